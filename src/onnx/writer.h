// SPDX-License-Identifier: Apache-2.0
// Writes a model that was read, with changes: bytes of what stays are copied as they are.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/model.h"
#include "ops/tensor.h"

namespace lathe::onnx {

// Of the default operator set, with one output.
struct NewNode {
  std::string op_type, name;
  std::vector<std::string> inputs;
  std::string output;
  std::optional<int64_t> axis;  // the attribute of that name
};

struct NewInitializer {
  std::string name;
  Tensor content;
};

// Nodes are those of the main graph, by their index.
struct ModelEdits {
  std::map<size_t, std::vector<NewNode>> before;            // nodes that come before one
  std::map<std::pair<size_t, size_t>, std::string> inputs;  // what a node's input reads now
  std::vector<NewInitializer> initializers;
  std::set<std::string, std::less<>> dropped;  // initializers that nothing reads any more
};

// `file` is what `model` was read from. Content that lies beside it is taken into the model. Fails where that makes
// more bytes than a protocol buffer may have.
Result<std::string> write_model(std::span<const std::byte> file, const Model& model, const ModelEdits& edits);

}  // namespace lathe::onnx
