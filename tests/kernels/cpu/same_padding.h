// SPDX-License-Identifier: Apache-2.0
// Convolutions whose padding follows from extents, as ONNX's SAME_UPPER and SAME_LOWER say it.
#pragma once

#include "kernels/cpu/reference.h"
#include "kernels/padding_rule.h"

namespace lathe::cpu::testing {

// A rule at random, with the padding that it means for images of these extents; returns the padding at the end.
template <class Shape>
std::array<int64_t, 3> pad_by_rule(Shape& shape, const std::array<int64_t, 3>& in) {
  shape.padding_rule = pick(0, 1) ? PaddingRule::lower_half : PaddingRule::upper_half;
  std::array<int64_t, 3> end{};
  for (int d = 0; d < 3; ++d) {
    const int64_t out = (in[d] + shape.stride[d] - 1) / shape.stride[d],
                  reach = (shape.kernel[d] - 1) * shape.dilation[d];
    const int64_t total = std::max<int64_t>((out - 1) * shape.stride[d] + reach + 1 - in[d], 0);
    shape.pad[d] = (total + (shape.padding_rule == PaddingRule::upper_half)) / 2;
    end[d] = total - shape.pad[d];
  }
  return end;
}

// What the kernel is told: padding that it is to find is not said.
template <class Shape>
Shape without_found_padding(Shape shape) {
  if (shape.padding_rule != PaddingRule::given) shape.pad = {};
  return shape;
}

}  // namespace lathe::cpu::testing
