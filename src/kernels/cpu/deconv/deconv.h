// SPDX-License-Identifier: Apache-2.0
// Kernel "deconv": transposed convolution over 1 to 3 spatial dimensions, channels last, f32, any stride, dilation,
// padding and groups.
//
// The output pixels whose position has the same remainder modulo the stride see the same taps: each such phase is a
// convolution of stride 1 over x, written to every stride-th pixel of the output. Nothing is scattered or summed twice.
//
// Inputs: 0 = x [N, C, spatial...], channel stride 1; 1 = packed weights (see pack_weights), a rank-1 f32 tensor; or,
// without `packed` and in one group, [C, O, kernel...] of any strides, packed while running; 2... = the program's
// operands, each of the output's rank with dimensions equal to the output's or 1. Output: [N, O, spatial...] with
// channel stride 1. Output pixel o of a dimension sums x[i] w[k] over i * stride - pad + k * dilation = o; padding at
// the end and output padding follow from the output's dimensions. Record.params: DeconvParams.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/conv/conv.h"

namespace lathe::cpu::deconv {

struct DeconvParams {
  ConvShape shape;  // of the transposed convolution
  gemm::Blocking blocking;
  bool packed = true;  // the weights
  static constexpr auto members() {
    return std::tuple(&DeconvParams::shape, &DeconvParams::blocking, &DeconvParams::packed);
  }
};

// Configurations worth trying. `rows` is the number of x's pixels, batch included.
std::vector<gemm::Blocking> candidates(const ConvShape& shape, int64_t rows, int threads);

// Weights [C, O / groups, kernel...], dense, to packed form.
int64_t packed_floats(const ConvShape& shape, const gemm::Blocking& blocking);
void pack_weights(const ConvShape& shape, const gemm::Blocking& blocking, const float* weights,
                  std::span<float> packed);

// One phase. A phase without taps has one tap of zeros.
struct DeconvPhase {
  std::array<int64_t, 3> offset{};     // its first output pixel
  std::array<int64_t, 3> first_tap{};  // along each dimension; the next ones are `tap_step` further
  std::array<int64_t, 3> tap_step{1, 1, 1};
  bool empty = false;
  ConvShape shape;  // stride 1; padding may be negative
};
inline constexpr int64_t kMaxPhases = 4096;
int64_t phase_count(const ConvShape& shape);
DeconvPhase phase_of(const ConvShape& shape, int64_t index);

}  // namespace lathe::cpu::deconv
