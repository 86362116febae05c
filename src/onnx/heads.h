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

// Heads of keys that several heads of queries share, of operators of ONNX Runtime.
struct GroupedHeads {
  int64_t of_queries = 0, of_keys = 0;
};
inline GroupedHeads read_grouped_heads(NodeContext& c) {
  const GroupedHeads heads{c.require_integer("num_heads"), c.require_integer("kv_num_heads")};
  if (!c.failed() && (heads.of_queries < 1 || heads.of_keys < 1 || heads.of_queries % heads.of_keys != 0))
    c.invalid("num_heads is {}, expected a multiple of kv_num_heads, {}", heads.of_queries, heads.of_keys);
  return heads;
}

// Their caches of other types than floats; the arguments are numbers of inputs.
inline void refuse_quantized_cache(NodeContext& c, size_t key_scale, size_t value_scale) {
  for (const char* type : {"k_quant_type", "v_quant_type"})
    if (c.string(type, "NONE") != "NONE")
      c.unsupported("{} '{}' is not supported; give a cache of floats", type, c.string(type, ""));
  if (c.has(key_scale) || c.has(value_scale))
    c.unsupported("k_scale and v_scale are not supported; give a cache of floats");
}

}  // namespace lathe::onnx
