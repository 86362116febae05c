// SPDX-License-Identifier: Apache-2.0
// Puts quantize and dequantize nodes into a float network, where the target multiplies integers.
#pragma once

#include <optional>

#include "passes/pass.h"
#include "quantization/calibration_cache.h"

namespace lathe {

// Whether the network says itself what is held in 8 bits: it has quantize or dequantize nodes, or reads such levels.
bool is_quantized(const ir::Graph& graph);

struct QuantizedNetwork {
  size_t products = 0;               // that compute with integers
  std::vector<std::string> tensors;  // that are held in 8 bits
  std::vector<std::string> unknown;  // that products read, and that have no scale
};

// Convolutions and matrix products of a tensor by constant weights: the tensor gets its scale, and so do all that read
// it; each output channel of the weights has one of its own, which its largest magnitude says. Products that stay with
// floats: those whose tensor has no scale, those that the target's integers cannot multiply
// (PassContext::arithmetic), those that are pinned to floats, and those within bodies of control flow.
Result<QuantizedNetwork> quantize_products(ir::Graph& graph, const TensorScales& scales, PassContext& context);

// The products that quantize_products() would quantise, in the graph's order, had every tensor a scale.
Result<std::vector<const ir::Node*>> quantizable_products(const ir::Graph& graph, PassContext& context);
// The dimension of such a product's weights that is its output channels.
size_t channels_of_weights(const ir::Node& product);

// Symmetric levels of weights: -127 to 127, for u8 about 128, or f8e4m3fn. A scale for each position of the axis, or
// one, which their largest magnitude says; `scales` has the weights' rank, so that it broadcasts.
struct WeightLevels {
  Tensor levels, scales;
};
Result<WeightLevels> levels_of_weights(const Tensor& weights, std::optional<size_t> axis, DType type = DType::i8);

// The tensors that quantize_products() would ask scales of.
Result<std::vector<std::string>> quantizable_tensors(const ir::Graph& graph, PassContext& context);

}  // namespace lathe
