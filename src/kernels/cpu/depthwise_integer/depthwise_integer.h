// SPDX-License-Identifier: Apache-2.0
// Kernel "depthwise_integer": convolution of 8-bit integers with one filter per channel (groups = C = O), channels
// last, summed in i32; 1 to 3 spatial dimensions, any stride, dilation and padding.
//
// Inputs: 0 = x [N, C, spatial...], u8 or i8, channel stride 1, any pixel pitch; 1 = packed weights (see pack_weights),
// a rank-1 i32 tensor; 2... = the program's operands, each of the output's rank with dimensions equal to the output's
// or 1: f32, u8, i8, and i32 for zero points of the sums. Output: [N, C, spatial...], f32, u8, i8 or, without a
// program, i32, channel stride 1. Taps outside of x are zeros. The program says all in f32; see gemm/integer_epilogue.h
// for the forms that it may have. Record.params: DepthwiseIntegerParams.
#pragma once

#include "kernels/cpu/depthwise/depthwise.h"
#include "kernels/cpu/depthwise/strip.h"

namespace lathe::cpu::depthwise {

struct DepthwiseIntegerParams {
  Shape shape;
  DepthwiseConfig config;
  gemm::IntegerTypes types = {};
  static constexpr auto members() {
    using P = DepthwiseIntegerParams;
    return std::tuple(&P::shape, &P::config, &P::types);
  }
};

// Rows of the kernel are multiplied four by four: of each four, [columns of the kernel][C rounded up to 16], as many i8
// as it has rows and zeros. Behind them 128 times the sum of each channel's weights, by which sums of i8 are too large
// once 128 makes them u8.
int64_t packed_fours(const Shape& shape);  // without the sums
int64_t packed_integers(const Shape& shape);
// Weights [C, 1, kernel...], dense.
void pack_weights(const Shape& shape, const int8_t* weights, std::span<int32_t> packed);

// Windows of 3 x 3, which read weights, and what else differs by channel, in an order of their own; its size. Those
// whose sums become levels and nothing else run along whole rows.
bool has_order(const Shape& shape);
int64_t ordered_integers(const Shape& shape);

}  // namespace lathe::cpu::depthwise

namespace lathe::cpu {
LATHE_ISA_DECLARE(void order_channels(const depthwise::Strip& strip, int64_t channels, int32_t* to))
LATHE_ISA_DECLARE(depthwise::StripFunction depthwise_integer_strip(bool multiplies_bytes))
}  // namespace lathe::cpu
