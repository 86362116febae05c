// SPDX-License-Identifier: Apache-2.0
// Kernel "expert_gemm": out[b..., N] = program(A[r..., K] x B[ids[i...]], operands...), f32, where r and i broadcast to
// b: each row times the matrix of its expert. Rows are multiplied by experts, so that a matrix which no row names is
// not read. With `bf16`, A and B are rounded to bf16, and their products are summed in f32.
//
// Inputs: 0 = A, any strides. 1 = B: packed weights, the matrices of all experts as kernel "gemm" has them, one behind
// the other; or, without `packed`, a plain f32 tensor [experts, K, N] of any strides, of which panels are packed while
// running. 2 = ids, of any integers and strides. A row whose id is not in [0, experts) is multiplied by zeros; with
// `strict` negative ones count from the end, and others are an error of the run. 3... = the program's operands, each of
// the output's rank with dimensions equal to the output's or 1.
// Output: any strides but the last, which is 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/params.h"
#include "kernels/cpu/gemm/driver.h"

namespace lathe::cpu::gemm {

struct ExpertGemmParams {
  int64_t experts = 0, k = 0, n = 0;  // 0 for a plain B, whose launch says them
  bool packed = false, strict = false, bf16 = false;
  Blocking blocking = {};  // with bf16, its k block is in pairs
  static constexpr auto members() {
    using P = ExpertGemmParams;
    return std::tuple(&P::experts, &P::k, &P::n, &P::packed, &P::strict, &P::bf16, &P::blocking);
  }
};

}  // namespace lathe::cpu::gemm
