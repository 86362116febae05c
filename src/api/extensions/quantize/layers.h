// SPDX-License-Identifier: Apache-2.0
// The convolutions and matrix products of an ONNX model, and which of them can be quantised.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "onnx/model.h"

namespace lathe::api::quantize {

struct ProductLayer {
  size_t node = 0;  // its index in the main graph
  std::string name, op;
  std::string why;     // it stays in floats; empty = it can be quantised, and the rest is known
  std::string tensor;  // that it multiplies, as the network calls it
  Tensor weights;
  size_t channels = 0;         // the dimension of the weights that is output channels
  std::optional<Tensor> bias;  // of as many elements, where it is the node's third input, and added as it is
};

// `network` is the model, imported; its constants are folded for that.
Result<std::vector<ProductLayer>> find_layers(const onnx::Model& model, ir::Graph& network);

}  // namespace lathe::api::quantize
