// SPDX-License-Identifier: Apache-2.0
// Kernel "depthwise": convolution with one filter per channel (groups = C = O), channels last, f32, 1 to 3 spatial
// dimensions, any stride, dilation and padding.
//
// Inputs: 0 = x [N, C, spatial...], channel stride 1, any pixel pitch; 1 = packed weights (see pack_weights), a rank-1
// f32 tensor; 2... = the program's operands (a bias is one of dims [1, C, 1...]), each of the output's rank with
// dimensions equal to the output's or 1. Output: [N, C, spatial...], channel stride 1. Taps outside of x are zeros.
//
// Record.params: 0 spatial rank, 1 C, 2..4 kernel D H W, 5..7 stride, 8..10 dilation, 11..13 padding at the beginning
// (missing leading dimensions: kernel 1, stride 1, dilation 1, padding 0), 14 pixels of a tile (1..6), 15 split (0 =
// threads share the pixels, 1 = the channels).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lathe::cpu::depthwise {

inline constexpr int kParams = 16;
inline constexpr int kMaxPixels = 6;

// Dimensions D H W.
struct Shape {
  int spatial = 2;
  int64_t channels = 1;
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  int64_t volume() const { return kernel[0] * kernel[1] * kernel[2]; }
};

struct Config {
  int pixels = kMaxPixels;
  bool split_channels = false;
  bool operator==(const Config&) const = default;
};

// Configurations worth trying for this many output pixels in a row, best guess first.
std::vector<Config> candidates(const Shape& shape, int64_t out_width, int threads);
std::vector<int64_t> params(const Shape& shape, const Config& config);

// Weights [C, 1, kernel...], dense, to packed form [taps][C rounded up to 16]; independent of the configuration.
int64_t packed_floats(const Shape& shape);
void pack_weights(const Shape& shape, const float* weights, std::span<float> packed);

}  // namespace lathe::cpu::depthwise
