// SPDX-License-Identifier: Apache-2.0
// Kernel "gemm_integer": out[..., M, N] = program(A[..., M, K] x B[K, N], operands...), u8 or i8 by i8, summed in i32.
//
// Inputs: 0 = A, u8 or i8; 1 = B: packed while building (see gemm/integer_panels.h), a rank-1 i32 tensor, of an A whose
// K is contiguous and a multiple of 4; or, without `packed`, u8 or i8 [..., K, N], packed while running; of any strides
// and K, as A is then, with leading dimensions that broadcast to the output's. 2... = the program's operands, each of
// the output's rank with dimensions equal to the output's or 1: f32, u8, i8, and i32 for zero points of the sums.
// Output: [..., M, N] of at least the rank of A and a plain B, f32, u8, i8 or, without a program, i32, the last
// stride 1. The program says all in f32; see gemm/integer_epilogue.h for the forms that it may have. Record.params:
// IntegerGemmParams.
#pragma once

#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/integer_epilogue.h"

namespace lathe::cpu::gemm {

struct IntegerGemmParams {
  int64_t k = 4, n = 1;    // 0 for a plain B, whose launch says them
  Blocking blocking = {};  // the k block in fours
  IntegerTypes types = {};
  bool packed = true;  // B
  static constexpr auto members() {
    using P = IntegerGemmParams;
    return std::tuple(&P::k, &P::n, &P::blocking, &P::types, &P::packed);
  }
};

}  // namespace lathe::cpu::gemm
