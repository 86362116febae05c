// SPDX-License-Identifier: Apache-2.0
// What importers of operators on quantised tensors share.
#pragma once

#include <optional>

#include "onnx/node_context.h"

namespace lathe::onnx {

// A vector along `axis` of a value of that rank; one number becomes a scalar, null stays.
ir::Value* along(NodeContext& c, ir::Value* value, int64_t axis, int64_t rank);
// A value of one element as a scalar.
ir::Value* single(NodeContext& c, ir::Value* value);

ir::Value* quantize(NodeContext& c, ir::Value* x, ir::Value* scale, ir::Value* zero_point, QuantizeAttrs attributes);
ir::Value* quantize(NodeContext& c, ir::Value* x, ir::Value* scale, ir::Value* zero_point, DType type);

// Inputs of the node that are one tensor, by their numbers. The zero point may be left out, and is 0 then.
struct LevelInputs {
  size_t levels, scale, zero_point;
};
// What they stand for, in f32. Scales and zero points of several numbers lie along the axis.
ir::Value* dequantized(NodeContext& c, const LevelInputs& inputs, int64_t axis = 0);
// Output 0: x in levels of one scale, an input; without the zero point they are of `type`, from 0.
void set_levels(NodeContext& c, ir::Value* x, size_t scale, size_t zero_point, DType type);

}  // namespace lathe::onnx
