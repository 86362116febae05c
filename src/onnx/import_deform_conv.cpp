// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "onnx/deformable_operands.h"
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
  require_operands(c, operands, how, Ints(pads.begin() + static_cast<ptrdiff_t>(spatial), pads.end()));
  if (!c.failed()) c.set_output(0, deformable_convolution(c, operands, how));
}

}  // namespace lathe::onnx
