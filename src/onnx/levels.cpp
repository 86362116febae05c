// SPDX-License-Identifier: Apache-2.0
#include "onnx/levels.h"

namespace lathe::onnx {

ir::Value* along(NodeContext& c, ir::Value* value, int64_t axis, int64_t rank) {
  if (!value || value->rank() != 1 || c.dim(value, 0) == Expr(1))
    return value && value->rank() == 1 ? c.reshape(value, Ints{}) : value;
  Ints axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) axes.push_back(i);
  return axes.empty() ? value : c.unsqueeze(value, axes);
}

ir::Value* single(NodeContext& c, ir::Value* value) { return value->rank() == 0 ? value : c.reshape(value, Ints{}); }

ir::Value* quantize(NodeContext& c, ir::Value* x, ir::Value* scale, ir::Value* zero_point, QuantizeAttrs attributes) {
  std::vector<ir::Value*> operands{x, scale};
  if (zero_point) operands.push_back(zero_point);
  return c.add(attributes, std::move(operands));
}

ir::Value* quantize(NodeContext& c, ir::Value* x, ir::Value* scale, ir::Value* zero_point, DType type) {
  QuantizeAttrs attributes;
  attributes.to = type;
  return quantize(c, x, scale, zero_point, std::move(attributes));
}

ir::Value* dequantized(NodeContext& c, const LevelInputs& inputs, int64_t axis) {
  ir::Value* x = c.require(inputs.levels);
  const auto beside = [&](ir::Value* value) { return along(c, value, axis, x->rank()); };
  std::vector<ir::Value*> operands{x, beside(c.require(inputs.scale))};
  if (ir::Value* zero_point = c.input(inputs.zero_point)) operands.push_back(beside(zero_point));
  return c.add(DequantizeAttrs{}, std::move(operands));
}

void set_levels(NodeContext& c, ir::Value* x, size_t scale, size_t zero_point, DType type) {
  ir::Value* zero = c.input(zero_point);
  if (zero) zero = single(c, zero);
  c.set_output(0, quantize(c, x, single(c, c.require(scale)), zero, zero ? zero->dtype() : type));
}

}  // namespace lathe::onnx
