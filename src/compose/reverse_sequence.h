// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// x with the first lengths[i] elements of `sequence` in reverse order where the index along `batch` is i. The axes are
// different ones of x, both >= 0; lengths are integers, a vector as long as `batch`.
ir::Value* reverse_sequence(ir::GraphBuilder& c, ir::Value* x, ir::Value* lengths, int64_t batch, int64_t sequence);

}  // namespace lathe
