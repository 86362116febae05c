// SPDX-License-Identifier: Apache-2.0
// What passes over quantised networks ask about values.
#pragma once

#include "ops/quantization.h"
#include "passes/rewrite.h"

namespace lathe {

// Levels that products of the target may multiply as they are: 8-bit integers, 8-bit floats.
bool are_multiplied(DType levels, const Arithmetic& arithmetic);

// value = (integers - zero point) * scale, of integers that ops compute with or 8-bit floats that products take, with a
// constant scale that broadcasts and whose elements are all positive.
struct Dequantized {
  const ir::Node* node = nullptr;
  ir::Value* integers = nullptr;
  const Tensor* scale = nullptr;
  ir::Value* zero_point = nullptr;                                         // null = 0
  bool is_uniform() const { return scale->volume() == 1 && !zero_point; }  // one scale, no zero point
};
std::optional<Dequantized> dequantized(const ir::Value* value);

// A convolution or matrix product of dequantised 8-bit operands, which integer kernels can multiply as they are.
struct QuantizedProduct {
  Dequantized x, w;
  std::vector<double> scale;  // of a sum: one, or one for each output channel
  size_t axis = 0;            // the output's channels
  size_t dimension = 0;       // those of the weights
  // Levels of the weights that stand for 0: one, or one for each output channel; empty = 0 does.
  std::vector<int64_t> zeros = {};
};
// `why` receives what is in the way of one.
std::optional<QuantizedProduct> quantized_product(const ir::Node& node, const PassContext& context,
                                                  std::string* why = nullptr);

// Whether a convolution reads beyond the ends of its images, or may.
bool is_padded(const ir::Node& convolution);

// Whether quantize(dequantize(q)) is q for every level q of the type, whatever the zero point.
bool keeps_levels(double scale, DType integers, DType floats);

// Whether the node takes bytes by bytes from a table: a gather, which reads and writes any layout.
bool is_lookup(const ir::Node& node);

// Whether it sums elements of windows: an average pooling, or a resize by weights. CPUs do so of levels.
bool sums_windows(const ir::Node& node);

// Ops that give elements of their first operand, wherever it is an integer. (Others read more of it, or add values.)
bool gives_elements(const ir::Node& node);

// Whether two operands (null = absent) hold the same numbers at all times.
bool same_contents(const ir::Value* a, const ir::Value* b);

}  // namespace lathe
