// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "onnx/node_context.h"

namespace lathe::onnx {

// Refuses input `input`, x, unless it has as many dimensions as `dims` names; nothing after an error.
void require_rank(NodeContext& c, size_t input, const ir::Value* x, std::string_view dims);

// What the dimensions of a node's inputs must be, in words: of "batch, boxes, 4" the last one is 4, and those called
// batch have one size in all inputs. A word that begins with a digit is that number, whatever follows it.
class PluginDims {
 public:
  explicit PluginDims(NodeContext& c) : c_(c) {}

  void set(std::string_view name, ir::Value* size) { sizes_[std::string(name)] = size; }  // an i64[1]
  void set(std::string_view name, int64_t size) { set(name, c_.ints({size})); }
  // i64[1], of a dimension that an input had.
  ir::Value* size(std::string_view name) const { return sizes_.find(name)->second; }
  // Input `input`, whose open dimensions are constrained to be these; an error where it is known that they are not.
  ir::Value* require(size_t input, std::string_view dims);

 private:
  NodeContext& c_;
  std::map<std::string, ir::Value*, std::less<>> sizes_;
};

}  // namespace lathe::onnx
