// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise/depthwise.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/conv/conv.h"

namespace lathe::cpu::depthwise {

int64_t padded_channels(const Shape& shape) { return round_up(shape.channels, 16); }

int64_t packed_floats(const Shape& shape) { return shape.volume() * padded_channels(shape); }

void pack_weights(const Shape& shape, const float* weights, std::span<float> packed) {
  const auto& kernel = shape.kernel;
  pack_weights(shape, weights, shape.volume(), {kernel[1] * kernel[2], kernel[2], 1}, packed);
}

void pack_weights(const Shape& shape, const float* weights, int64_t channel_stride,
                  const std::array<int64_t, 3>& tap_strides, std::span<float> packed) {
  const auto& kernel = shape.kernel;
  float* to = packed.data();
  for (int64_t t = 0; t < shape.volume(); ++t, to += padded_channels(shape)) {
    const float* from = weights + t / (kernel[1] * kernel[2]) * tap_strides[0] +
                        t / kernel[2] % kernel[1] * tap_strides[1] + t % kernel[2] * tap_strides[2];
    for (int64_t c = 0; c < shape.channels; ++c) to[c] = from[c * channel_stride];
    std::fill(to + shape.channels, to + padded_channels(shape), 0.0f);
  }
}

bool is_valid(const Shape& shape, const DepthwiseConfig& config) {
  constexpr int64_t kMaxVolume = 1 << 20;
  return conv::is_valid_window(shape, kMaxVolume) && shape.channels >= 1 && config.pixels >= 1 &&
         config.pixels <= kMaxPixels;
}

std::vector<DepthwiseConfig> candidates(int threads) {
  std::vector<DepthwiseConfig> found;
  for (int pixels = kMaxPixels; pixels > 1; --pixels) {
    found.push_back({pixels, false});
    if (threads > 1) found.push_back({pixels, true});
  }
  return found;
}

}  // namespace lathe::cpu::depthwise
