// SPDX-License-Identifier: Apache-2.0
// Kernel "conv_integer": convolution over 1 to 3 spatial dimensions of 8-bit integers, summed in i32; any stride,
// dilation, padding and groups of channels that are multiples of 4.
//
// Inputs: 0 = x [N, C, spatial...], u8 or i8, channel stride 1 and all other strides multiples of 4; 1 = packed weights
// (gemm/integer_panels.h; along K run the taps, then the channels), a rank-1 i32 tensor; or, without `packed`, u8 or i8
// [O, C / groups, kernel...] of any strides, packed while running; 2... = the program's operands,
// each of the output's rank with dimensions equal to the output's or 1: f32, u8, i8, and i32 for zero points of the
// sums. Output: [N, O, spatial...], f32, u8, i8 or, without a program, i32, channel stride 1. Taps outside of x are
// zeros. The program says all in f32; see gemm/integer_epilogue.h for the forms that it may have. Record.params:
// ConvIntegerParams.
#pragma once

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/integer_epilogue.h"

namespace lathe::cpu::conv {

struct ConvIntegerParams {
  ConvParams conv;  // direct; input channels and the k block in fours
  gemm::IntegerTypes types = {};
  bool packed = true;  // the weights
  static constexpr auto members() {
    using P = ConvIntegerParams;
    return std::tuple(&P::conv, &P::types, &P::packed);
  }
};

}  // namespace lathe::cpu::conv
