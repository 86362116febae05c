// SPDX-License-Identifier: Apache-2.0
// Kernel "gemm_integer": out[..., M, N] = program(A[..., M, K] x B[K, N], operands...), u8 or i8 by i8, summed in i32.
//
// Inputs: 0 = A, u8 or i8, K contiguous and a multiple of 4; 1 = B, packed while building (see
// gemm/integer_panels.h), a rank-1 i32 tensor; 2... = the program's operands, each of the output's rank with dimensions
// equal to the output's or 1: f32, u8, i8, and i32 for zero points of the sums. Output: [..., M, N] of the rank of A,
// f32, u8 or i8, the last stride 1. The program says all in f32; see gemm/integer_epilogue.h for the forms that it may
// have.
// Record.params: IntegerGemmParams.
#pragma once

#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/integer_epilogue.h"

namespace lathe::cpu::gemm {

struct IntegerGemmParams {
  int64_t k = 4, n = 1;
  Blocking blocking = {};  // the k block in fours
  IntegerTypes types = {};
  static constexpr auto members() {
    return std::tuple(&IntegerGemmParams::k, &IntegerGemmParams::n, &IntegerGemmParams::blocking,
                      &IntegerGemmParams::types);
  }
};

}  // namespace lathe::cpu::gemm
