// SPDX-License-Identifier: Apache-2.0
#include "compose/dynamic_quantize.h"

#include <cmath>

namespace lathe {
namespace {

double largest_level(DType type) { return type == DType::i8 ? 127 : type == DType::f4e2m1 ? 6 : 448; }

// The largest magnitude of each block, of x's rank.
ir::Value* largest_of(ir::GraphBuilder& c, ir::Value* x, const Ints& blocks) {
  std::vector<ir::Value*> dims;
  Ints reduced, inner;
  int64_t axis = 0;
  for (size_t d = 0; d < blocks.size(); ++d, ++axis) {
    const auto dim = static_cast<int64_t>(d);
    if (blocks[d] == 0) reduced.push_back(axis);
    if (blocks[d] <= 1) {
      dims.push_back(c.shape_of(x, dim, dim + 1));
      continue;
    }
    dims.push_back(c.ints({*x->shape()[d].as_constant() / blocks[d], blocks[d]}));
    reduced.push_back(++axis), inner.push_back(axis);
  }
  ir::Value* parts = inner.empty() ? x : c.reshape(x, c.concat(std::move(dims), 0), true);
  ir::Value* largest = c.reduce(ReduceOp::max, c.unary(UnaryOp::abs, parts), reduced);
  return inner.empty() ? largest : c.squeeze(largest, inner);
}

// What a level of each block is worth.
ir::Value* worth(ir::GraphBuilder& c, ir::Value* scales, ir::Value* second_scale) {
  ir::Value* numbers = c.cast(scales, DType::f32);
  return second_scale ? c.mul(numbers, second_scale) : numbers;
}

ir::Value* as_number(ir::GraphBuilder& c, ir::Value* scale) {
  return scale ? c.reshape(c.cast(scale, DType::f32), Ints{}) : nullptr;
}

}  // namespace

DynamicallyQuantized dynamic_quantize(ir::GraphBuilder& c, ir::Value* x, ir::Value* second_scale,
                                      const DynamicQuantization& how) {
  if (c.failed()) return {x, x};
  x = c.cast(x, DType::f32), second_scale = as_number(c, second_scale);
  ir::Value* scales = c.binary(ElementwiseOp::div, largest_of(c, x, how.blocks), largest_level(how.to));
  if (second_scale) scales = c.divide(scales, second_scale);
  scales = c.cast(scales, how.scale_type);
  ir::Value* steps = worth(c, scales, second_scale);
  // Blocks of zeros, and of numbers for which the scale is too small, are levels 0.
  ir::Value* none = c.binary(ElementwiseOp::equal, steps, 0.0);
  QuantizeAttrs attributes;
  attributes.to = how.to, attributes.blocks = how.blocks;
  ir::Value* divisors = c.select(none, c.scalar(HUGE_VAL, DType::f32), steps);
  return {c.add(attributes, {x, divisors}), scales};
}

ir::Value* dequantize_blocks(ir::GraphBuilder& c, const DynamicallyQuantized& x, ir::Value* second_scale,
                             const DynamicQuantization& how, DType type) {
  DequantizeAttrs attributes;
  attributes.blocks = how.blocks;
  return c.cast(c.add(attributes, {x.levels, worth(c, x.scales, as_number(c, second_scale))}), type);
}

}  // namespace lathe
