// SPDX-License-Identifier: Apache-2.0
#include "onnx/deformable_operands.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace lathe::onnx {
namespace {

// What a convolution leaves of the dimensions of x.
ir::Value* positions_of(NodeContext& c, ir::Value* x, const DeformableConvolution& how, const Dims& kernel,
                        const Ints& padding_end) {
  Ints room;
  for (size_t d = 0; d < kernel.size(); ++d)
    room.push_back(how.padding[d] + padding_end[d] - (kernel[d] - 1) * how.dilation[d] - 1);
  ir::Value* last = c.divide(c.plus(c.shape_of(x, 2), c.ints(room)), c.ints(how.stride));
  return c.plus(last, c.ints(Ints(kernel.size(), 1)));
}

}  // namespace

void require_operands(NodeContext& c, DeformableOperands& operands, const DeformableConvolution& how,
                      const Ints& padding_end) {
  const Dims weights = *as_constant(operands.weight->shape()), kernel(weights.begin() + 2, weights.end());
  const int64_t channels = weights[1] * std::max<int64_t>(how.groups, 1);
  if (how.groups < 1 || how.offset_groups < 1 || weights[0] % how.groups != 0 || channels % how.offset_groups != 0)
    return c.invalid("{} groups and {} groups of offsets; expected numbers that divide its {} results and {} channels",
                     how.groups, how.offset_groups, weights[0], channels);
  const int64_t taps = std::accumulate(kernel.begin(), kernel.end(), how.offset_groups, std::multiplies<>());
  ir::Value *x = operands.x, *images = c.shape_of(x, 0, 1);
  ir::Value* positions = positions_of(c, x, how, kernel, padding_end);
  const auto shape = [&](int64_t of_channels, ir::Value* extents) {
    return c.concat({images, c.ints({of_channels}), extents}, 0);
  };
  operands.x = c.require_shape("its input", x, shape(channels, c.shape_of(x, 2)));
  operands.offset =
      c.require_shape("its offset", operands.offset, shape(taps * static_cast<int64_t>(kernel.size()), positions));
  if (operands.mask) operands.mask = c.require_shape("its mask", operands.mask, shape(taps, positions));
  if (operands.bias) operands.bias = c.require_shape("its bias", operands.bias, c.ints({weights[0]}));
}

}  // namespace lathe::onnx
