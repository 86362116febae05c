// SPDX-License-Identifier: Apache-2.0
// What kernels of every device know of a convolution.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "kernels/padding_rule.h"

namespace lathe {

// Dimensions D H W; of those that are missing, the kernel, stride and dilation are 1 and the padding is 0.
struct ConvShape {
  int spatial = 2;
  int64_t groups = 1, in_channels = 1, out_channels = 1;
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> pad{0, 0, 0};  // at the beginning, where the rule is that it is given
  PaddingRule padding_rule = PaddingRule::given;

  int64_t group_inputs() const { return in_channels / groups; }
  int64_t group_outputs() const { return out_channels / groups; }
  int64_t volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  static constexpr auto members() {
    return std::tuple(&ConvShape::spatial, &ConvShape::groups, &ConvShape::in_channels, &ConvShape::out_channels,
                      &ConvShape::kernel, &ConvShape::stride, &ConvShape::dilation, &ConvShape::pad,
                      &ConvShape::padding_rule);
  }
};

}  // namespace lathe
