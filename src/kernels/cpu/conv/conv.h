// SPDX-License-Identifier: Apache-2.0
// Kernel "conv": convolution over 1 to 3 spatial dimensions, f32, any stride, dilation, padding and groups.
//
// Inputs: 0 = x [N, C, spatial...]; 1 = packed weights (see pack_weights), a rank-1 f32 tensor; 2... = the program's
// operands (a bias is one of dims [1, O, 1...]), each of the output's rank with dimensions equal to the output's or 1.
// Output: [N, O, spatial...] with channel stride 1 and any other strides, so that it may be a slice of a wider tensor.
// x has channel stride 1 (channels last, any pixel pitch); with Algorithm::planar it has stride 1 along the last
// spatial dimension instead (N C H W, as a network's input comes), one group, and dilation 1 along that dimension. Taps
// outside of x are zeros: padding at the end follows from the output's dimensions.
//
// Record.params: 0 spatial rank, 1 groups, 2 C, 3 O, 4..6 kernel D H W, 7..9 stride, 10..12 dilation, 13..15 padding at
// the beginning (missing leading dimensions: kernel 1, stride 1, dilation 1, padding 0), 16 algorithm, 17 panel width
// (16, 32, 48, 64), 18 tile rows (1..14), 19 row block (0 = all), 20 k block (0 = all), 21 split (0 = threads share
// rows, 1 = columns), 22 tiles keep to one output row (0 or 1).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/gemm/driver.h"

namespace lathe::cpu::conv {

inline constexpr int kParams = 23;
inline constexpr int kWidthParam = 17;

enum class Algorithm {
  direct = 0,     // x channels last
  planar = 1,     // x planar: the first layer of an image network
  winograd2 = 2,  // F(2x2, 3x3)
  winograd4 = 3,  // F(4x4, 3x3): less work, more rounding error
};

// Dimensions D H W; a 2-D convolution has D = 1.
struct ConvShape {
  int spatial = 2;
  int64_t groups = 1, in_channels = 1, out_channels = 1;
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};

  int64_t group_inputs() const { return in_channels / groups; }
  int64_t group_outputs() const { return out_channels / groups; }
  int64_t volume() const { return kernel[0] * kernel[1] * kernel[2]; }
};

struct Config {
  Algorithm algorithm = Algorithm::direct;
  gemm::Blocking blocking;
  bool row_aligned = false;
  bool operator==(const Config&) const = default;
};

struct ConvProblem {
  ConvShape shape;
  int64_t batch = 1;
  std::array<int64_t, 3> out{1, 1, 1};  // output D H W
  bool planar_input = false;            // x is N C H W
};

// Configurations worth trying, best guess first, at most 24; empty when no algorithm accepts the problem. The weights
// are packed for one configuration's algorithm and panel width.
std::vector<Config> candidates(const ConvProblem& problem, int threads);

// Record.params of a launch.
std::vector<int64_t> params(const ConvShape& shape, const Config& config);

// The same back, when they are sane.
struct ConvParams {
  ConvShape shape;
  Config config;
};
Result<ConvParams> read_params(std::span<const int64_t> params);

// Weights [O, C / groups, kernel...], dense, to packed form.
int64_t packed_floats(const ConvShape& shape, const Config& config);
void pack_weights(const ConvShape& shape, const Config& config, const float* weights, std::span<float> packed);

}  // namespace lathe::cpu::conv
