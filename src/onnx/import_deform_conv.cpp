// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include "compose/deformable_convolution.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// The attribute's numbers, one for each of `count` places, all of them at least `least`.
Ints numbers(NodeContext& c, const char* name, size_t count, int64_t fallback, int64_t least) {
  Ints values = c.integers(name, Ints(count, fallback));
  const auto is_small = [&](int64_t value) { return value < least; };
  if (values.size() != count || std::any_of(values.begin(), values.end(), is_small)) {
    c.invalid("its attribute '{}' must have {} numbers of at least {}", name, count, least);
    values.assign(count, std::max(fallback, least));
  }
  return values;
}

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

void import_deform_conv(NodeContext& c) {
  DeformableOperands operands{c.require(0), c.require(1), c.require(2), c.input(3), c.input(4)};
  if (c.failed()) return;
  const std::optional<Dims> weights = as_constant(operands.weight->shape());
  if (!weights) return c.unsupported("the dimensions of its weights are not known while building; fix them");
  if (weights->size() < 3 || operands.x->rank() != operands.weight->rank())
    return c.invalid("its input and weights have {} and {} dimensions, expected the same number, 3 or more",
                     operands.x->rank(), weights->size());
  const Dims kernel(weights->begin() + 2, weights->end());
  const size_t spatial = kernel.size();
  if (const Ints given = c.integers("kernel_shape", kernel); given != kernel)
    return c.invalid("its kernel_shape does not fit its weights, of dims {}", to_string(operands.weight->shape()));
  const Ints pads = numbers(c, "pads", 2 * spatial, 0, 0);
  DeformableConvolution how{
      numbers(c, "strides", spatial, 1, 1), Ints(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(spatial)),
      numbers(c, "dilations", spatial, 1, 1), c.integer("group", 1), c.integer("offset_group", 1)};
  const int64_t channels = (*weights)[1] * std::max<int64_t>(how.groups, 1);
  if (how.groups < 1 || how.offset_groups < 1 || (*weights)[0] % how.groups != 0 || channels % how.offset_groups != 0)
    return c.invalid("{} groups and {} groups of offsets; expected numbers that divide its {} results and {} channels",
                     how.groups, how.offset_groups, (*weights)[0], channels);
  const int64_t taps = std::accumulate(kernel.begin(), kernel.end(), how.offset_groups, std::multiplies<>());
  ir::Value *x = operands.x, *images = c.shape_of(x, 0, 1);
  ir::Value* positions =
      positions_of(c, x, how, kernel, Ints(pads.begin() + static_cast<ptrdiff_t>(spatial), pads.end()));
  const auto shape = [&](int64_t of_channels, ir::Value* extents) {
    return c.concat({images, c.ints({of_channels}), extents}, 0);
  };
  operands.x = c.require_shape("its input", x, shape(channels, c.shape_of(x, 2)));
  operands.offset =
      c.require_shape("its offset", operands.offset, shape(taps * static_cast<int64_t>(spatial), positions));
  if (operands.mask) operands.mask = c.require_shape("its mask", operands.mask, shape(taps, positions));
  if (!c.failed()) c.set_output(0, deformable_convolution(c, operands, how));
}

}  // namespace lathe::onnx
