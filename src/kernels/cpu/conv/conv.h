// SPDX-License-Identifier: Apache-2.0
// Kernel "conv": convolution over 1 to 3 spatial dimensions, f32, any stride, dilation, padding and groups.
//
// Inputs: 0 = x [N, C, spatial...]; 1 = packed weights (see pack_weights), a rank-1 f32 tensor; or, without `packed`,
// [O, C / groups, kernel...] of any strides, packed while running or, for Winograd, whose weights are constants,
// transformed once, before the first run; 2... = the program's operands (a bias is one of dims [1, O, 1...]), each of
// the output's rank with dimensions equal to the output's or 1. Output: [N, O, spatial...] with channel stride 1 and
// any other strides, so that it may be a slice of a wider tensor. x has channel stride 1 (channels last, any pixel
// pitch); with Algorithm::planar it has stride 1 along the last spatial dimension instead (N C H W, as a network's
// input comes), one group, and dilation 1 along that dimension. Taps outside of x are zeros: padding at the end follows
// from the output's dimensions. Record.params: ConvParams.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device/params.h"
#include "kernels/conv_shape.h"
#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu::conv {

enum class Algorithm {
  direct = 0,     // x channels last
  planar = 1,     // x planar: the first layer of an image network
  winograd2 = 2,  // F(2x2, 3x3)
  winograd4 = 3,  // F(4x4, 3x3): less work, more rounding error
};

inline bool is_winograd(Algorithm algorithm) {
  return algorithm == Algorithm::winograd2 || algorithm == Algorithm::winograd4;
}

struct ConvConfig {
  Algorithm algorithm = Algorithm::direct;
  gemm::Blocking blocking;
  bool row_aligned = false;  // tiles keep to one output row
  static constexpr auto members() {
    return std::tuple(&ConvConfig::algorithm, &ConvConfig::blocking, &ConvConfig::row_aligned);
  }
  bool operator==(const ConvConfig&) const = default;
};

struct ConvProblem {
  ConvShape shape;
  int64_t batch = 1;
  std::array<int64_t, 3> out{1, 1, 1};  // output D H W
  bool planar_input = false;            // x is N C H W
  std::array<int64_t, 3> in{1, 1, 1};   // input D H W
  bool is_narrow = false;               // of 8-bit integers
};

// Configurations worth trying, at most 24; empty when no algorithm accepts the problem. The weights
// are packed for one configuration's algorithm and panel width.
std::vector<ConvConfig> candidates(const ConvProblem& problem, int threads);

struct ConvParams {
  ConvShape shape;
  ConvConfig config;
  bool packed = true;  // the weights
  static constexpr auto members() { return std::tuple(&ConvParams::shape, &ConvParams::config, &ConvParams::packed); }
};
// Whether a kernel can work with them; they come from a file.
bool is_valid(const ConvParams& params);
// ... with the extents of a convolution, of `volume` weights at most for each channel.
template <class Shape>
bool is_valid_window(const Shape& shape, int64_t volume) {
  if (shape.spatial < 1 || shape.spatial > 3 || !is_one_of(shape.padding_rule, PaddingRule::upper_half)) return false;
  for (int d = 0; d < 3; ++d) {
    if (shape.kernel[d] < 1 || shape.kernel[d] > volume || shape.stride[d] < 1 || shape.dilation[d] < 1) return false;
    if (d < 3 - shape.spatial &&
        (shape.kernel[d] != 1 || shape.stride[d] != 1 || shape.dilation[d] != 1 || shape.pad[d] != 0))
      return false;
  }
  return shape.kernel[0] * shape.kernel[1] <= volume && shape.volume() <= volume;
}

// Weights [O, C / groups, kernel...], dense, to packed form. Not for Winograd.
int64_t packed_floats(const ConvShape& shape, const ConvConfig& config);
void pack_weights(const ConvShape& shape, const ConvConfig& config, const float* weights, std::span<float> packed);

}  // namespace lathe::cpu::conv
