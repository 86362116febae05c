// SPDX-License-Identifier: Apache-2.0
// Samples of all taps, as channels of an image, then a convolution of 1 x 1.
#include "compose/deformable_convolution.h"

#include <functional>
#include <numeric>

#include "compose/count_up.h"
#include "compose/grid_sample.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

// How many images there are if each group of offsets has one: i64[1].
ir::Value* images_of(ir::GraphBuilder& c, const DeformableOperands& operands, const DeformableConvolution& how) {
  return c.mul(c.shape_of(operands.x, 0, 1), c.ints({how.offset_groups}));
}

// Where taps lie that are not moved: along dimension d of x, of each tap and each position along d.
ir::Value* unmoved(ir::GraphBuilder& c, const DeformableConvolution& how, const Dims& kernel, size_t d,
                   ir::Value* positions) {
  const int64_t taps = std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>());
  const int64_t inner =
      std::accumulate(kernel.begin() + static_cast<ptrdiff_t>(d) + 1, kernel.end(), int64_t{1}, std::multiplies<>());
  Ints firsts;
  for (int64_t tap = 0; tap < taps; ++tap) firsts.push_back(tap / inner % kernel[d] * how.dilation[d] - how.padding[d]);
  Ints of_taps(kernel.size() + 1, 1), of_positions(kernel.size() + 1, 1);
  of_taps[0] = taps;
  of_positions[d + 1] = -1;
  const auto axis = static_cast<int64_t>(d);
  ir::Value* steps = c.mul(count_up(c, c.slice(positions, 0, axis, axis + 1)), c.integer_scalar(how.stride[d]));
  return c.plus(c.reshape(c.ints(firsts), of_taps), c.reshape(steps, of_positions));
}

// Points of all taps for grid_sample(): [images, taps * first positions, other positions..., spatial dimensions].
ir::Value* points_of(ir::GraphBuilder& c, const DeformableOperands& operands, const DeformableConvolution& how,
                     const Dims& kernel) {
  const auto spatial = static_cast<int64_t>(kernel.size());
  const int64_t taps = std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>());
  ir::Value *images = images_of(c, operands, how), *positions = c.shape_of(operands.offset, 2);
  ir::Value* offset = c.reshape(operands.offset, c.concat({images, c.ints({taps, spatial}), positions}, 0), true);
  offset = c.cast(offset, DType::f64);
  std::vector<ir::Value*> parts;  // from -1 to 1 between the edges of x; its last dimension comes first
  for (int64_t d = spatial; d-- > 0;) {
    ir::Value* moved = c.squeeze(c.slice(offset, 2, d, d + 1), {2});
    ir::Value* at = c.plus(moved, c.cast(unmoved(c, how, kernel, static_cast<size_t>(d), positions), DType::f64));
    ir::Value* extent = c.cast(c.squeeze(c.shape_of(operands.x, 2 + d, 3 + d), {0}), DType::f64);
    at = c.divide(c.binary(Op::add, c.binary(Op::mul, at, 2.0), 1.0), extent);
    parts.push_back(c.unsqueeze(c.binary(Op::sub, at, 1.0), {spatial + 2}));
  }
  ir::Value* first = c.mul(c.slice(positions, 0, 0, 1), c.ints({taps}));
  ir::Value* others = c.slice(positions, 0, 1, INT64_MAX);
  ir::Value* shape = c.concat({images, first, others, c.ints({spatial})}, 0);
  return c.reshape(c.concat(parts, spatial + 2), shape, true);
}

}  // namespace

ir::Value* deformable_convolution(ir::GraphBuilder& c, const DeformableOperands& operands,
                                  const DeformableConvolution& how) {
  const Dims weights = *as_constant(operands.weight->shape()), kernel(weights.begin() + 2, weights.end());
  const int64_t channels = weights[1] * how.groups;
  const int64_t taps = std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>());
  ir::Value *number = images_of(c, operands, how), *positions = c.shape_of(operands.offset, 2);
  const auto shaped = [&](ir::Value* x, ir::Value* count, const Ints& each, ir::Value* extents) {
    return c.reshape(x, c.concat({count, c.ints(each), extents}, 0), true);
  };
  ir::Value* images = shaped(operands.x, number, {channels / how.offset_groups}, c.shape_of(operands.x, 2));
  ir::Value* samples = grid_sample(c, images, points_of(c, operands, how, kernel), GridSample{});
  samples = shaped(samples, number, {channels / how.offset_groups, taps}, positions);
  if (operands.mask) samples = c.mul(samples, shaped(operands.mask, number, {1, taps}, positions));
  ir::Value* columns = shaped(samples, c.shape_of(operands.x, 0, 1), {channels * taps}, positions);
  Ints points(weights.size(), 1);
  points[0] = weights[0];
  points[1] = -1;
  ConvolutionAttrs attributes;
  attributes.groups = how.groups;
  std::vector<ir::Value*> all = {columns, c.reshape(operands.weight, points)};
  if (operands.bias) all.push_back(operands.bias);
  return c.add(attributes, all);
}

}  // namespace lathe
