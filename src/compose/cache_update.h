// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// cache[batch, heads, rows, size] with the tokens of an update[tokens, heads, size] written into it: those of batch
// entry b are starts[b] to starts[b + 1], and go to the rows from first[b] on. Rows beyond the cache are left out.
ir::Value* write_packed_rows(ir::GraphBuilder& c, ir::Value* cache, ir::Value* update, ir::Value* first,
                             ir::Value* starts);

}  // namespace lathe
