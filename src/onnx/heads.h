// SPDX-License-Identifier: Apache-2.0
// Heads of attention, which lie in rows next to each other.
#pragma once

#include "onnx/node_context.h"

namespace lathe::onnx {

// [batch, sequence, heads * size] to [batch, heads, sequence, size]; rank 4 is that already.
inline ir::Value* split_heads(NodeContext& c, ir::Value* x, int64_t heads) {
  return x->rank() == 4 ? x : c.transpose(c.reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3});
}

inline ir::Value* merge_heads(NodeContext& c, ir::Value* x) {
  return c.reshape(c.transpose(x, {0, 2, 1, 3}), {0, 0, -1});
}

}  // namespace lathe::onnx
