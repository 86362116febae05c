// SPDX-License-Identifier: Apache-2.0
// Kernel "depthwise": convolution with one filter per channel (groups = C = O), channels last, f32, 1 to 3 spatial
// dimensions, any stride, dilation and padding.
//
// Inputs: 0 = x [N, C, spatial...], channel stride 1, any pixel pitch; 1 = packed weights (see pack_weights), a rank-1
// f32 tensor; or, without `packed`, [C, 1, kernel...] of any strides, packed while running; 2... = the program's
// operands (a bias is one of dims [1, C, 1...]), each of the output's rank with dimensions equal to the output's or 1.
// Output: [N, C, spatial...], channel stride 1. Taps outside of x are zeros. Record.params: DepthwiseParams.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device/params.h"
#include "kernels/padding_rule.h"

namespace lathe::cpu::depthwise {

inline constexpr int kMaxPixels = 6;

// Dimensions D H W; of those that are missing, the kernel, stride and dilation are 1 and the padding is 0.
struct Shape {
  int spatial = 2;
  int64_t channels = 1;
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> pad{0, 0, 0};  // at the beginning, where the rule is that it is given
  PaddingRule padding_rule = PaddingRule::given;
  int64_t volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  static constexpr auto members() {
    return std::tuple(&Shape::spatial, &Shape::channels, &Shape::kernel, &Shape::stride, &Shape::dilation, &Shape::pad,
                      &Shape::padding_rule);
  }
};

struct DepthwiseConfig {
  int pixels = kMaxPixels;      // of a tile
  bool split_channels = false;  // threads share the channels, not the pixels
  static constexpr auto members() { return std::tuple(&DepthwiseConfig::pixels, &DepthwiseConfig::split_channels); }
  bool operator==(const DepthwiseConfig&) const = default;
};

struct DepthwiseParams {
  Shape shape;
  DepthwiseConfig config;
  bool packed = true;  // the weights
  static constexpr auto members() {
    return std::tuple(&DepthwiseParams::shape, &DepthwiseParams::config, &DepthwiseParams::packed);
  }
};

// Whether a kernel can work with them; they come from a file.
bool is_valid(const Shape& shape, const DepthwiseConfig& config);

// Configurations worth trying.
std::vector<DepthwiseConfig> candidates(int threads);

// Channels of packed weights.
int64_t padded_channels(const Shape& shape);

// Weights [C, 1, kernel...], dense, to packed form [taps][C rounded up to 16]; independent of the configuration.
int64_t packed_floats(const Shape& shape);
void pack_weights(const Shape& shape, const float* weights, std::span<float> packed);
// ... of any strides, from channel to channel and along the kernel.
void pack_weights(const Shape& shape, const float* weights, int64_t channel_stride,
                  const std::array<int64_t, 3>& tap_strides, std::span<float> packed);

}  // namespace lathe::cpu::depthwise
