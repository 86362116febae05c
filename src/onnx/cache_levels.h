// SPDX-License-Identifier: Apache-2.0
// Caches of keys or values in 8 bits, as attention operators of ONNX Runtime have them.
#pragma once

#include <string_view>

#include "onnx/node_context.h"

namespace lathe::onnx {

// What a cache holds of heads [batch, heads, tokens, size].
class CacheLevels {
 public:
  // `side`: k or v, before the names of attributes. `cache`: null = the operator keeps none. Both types and the scale
  // are checked; input `scale` has one number, or one for each element of all heads of one token.
  CacheLevels(NodeContext& c, std::string_view side, const ir::Value* cache, size_t scale, int64_t heads, DType floats);

  // Heads as the cache has them, and what these stand for.
  ir::Value* levels(ir::Value* heads) const;
  ir::Value* floats(ir::Value* levels) const;

 private:
  void read(const ir::Value* cache, size_t scale, int64_t heads);

  NodeContext& c_;
  std::string side_;
  DType type_, floats_;
  ir::Value* scale_ = nullptr;  // null = the cache has heads as they are
};

}  // namespace lathe::onnx
