// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// The cache with the update's slices along `axis` (not 0) written into it, those of batch entry b from first[b] on; all
// from 0 where `first` is null. The other dims of both agree. Indices beyond the cache fail when running, unless they
// are `circular`: then they begin anew.
ir::Value* write_rows(ir::GraphBuilder& c, ir::Value* cache, ir::Value* update, ir::Value* first, int64_t axis,
                      bool circular);

// cache[batch, heads, rows, size] with the tokens of an update[tokens, heads, size] written into it: those of batch
// entry b are starts[b] to starts[b + 1], and go to the rows from first[b] on. Rows beyond the cache are left out.
ir::Value* write_packed_rows(ir::GraphBuilder& c, ir::Value* cache, ir::Value* update, ir::Value* first,
                             ir::Value* starts);

}  // namespace lathe
