// SPDX-License-Identifier: Apache-2.0
// Padding of windows that slide over an axis, as kernels' parameters state it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace lathe {

// Numbers are written into plans.
enum class PaddingRule : int8_t {
  given = 0,
  // What is needed so that the output has the extent that it has; one half of it, rounded down or up, at the beginning.
  lower_half = 1,
  upper_half = 2,
};

// At the beginning, of what is needed by a rule that does not give it.
inline int64_t share_of(PaddingRule rule, int64_t needed) {
  const int64_t total = std::max<int64_t>(needed, 0);
  return rule == PaddingRule::lower_half ? total / 2 : total - total / 2;
}

// Of an axis, at both ends.
struct Padding {
  int64_t begin = 0, end = 0;
};

// Slides over `input` pixels and stops at `output` places.
struct SlidingWindow {
  int64_t input, output, kernel, stride, dilation;

  Padding padding(PaddingRule rule, const Padding& given) const {
    if (rule == PaddingRule::given) return given;
    const int64_t needed = std::max<int64_t>((output - 1) * stride + (kernel - 1) * dilation + 1 - input, 0);
    const int64_t begin = share_of(rule, needed);
    return {begin, needed - begin};
  }
};

// A convolution's shape whose `pad`, at the beginning, is what its rule says for images of these extents.
template <class Shape>
Shape with_padding(Shape shape, const std::array<int64_t, 3>& input, const std::array<int64_t, 3>& output) {
  for (size_t d = 0; d < 3; ++d) {
    const SlidingWindow window{input[d], output[d], shape.kernel[d], shape.stride[d], shape.dilation[d]};
    shape.pad[d] = window.padding(shape.padding_rule, {shape.pad[d]}).begin;
  }
  return shape;
}

}  // namespace lathe
