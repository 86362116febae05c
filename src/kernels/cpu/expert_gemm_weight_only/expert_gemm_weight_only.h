// SPDX-License-Identifier: Apache-2.0
// Kernel "expert_gemm_weight_only": as "expert_gemm", by weights of 4 or 8 bits that are dequantised in registers, as
// those of "gemm_weight_only" are.
//
// Inputs: 0 = A, f32, any strides. 1 = B: the packed panels of all experts (PackedPanels), one behind the other, u8. 2
// = ids and 3... = the program's operands, as of "expert_gemm". Output: f32, any strides but the last, which is 1.
#pragma once

#include "kernels/cpu/gemm_weight_only/gemm_weight_only.h"

namespace lathe::cpu::gemm {

struct ExpertWeightOnlyParams {
  int64_t experts = 1;
  bool strict = false;
  WeightOnlyParams matrix;  // of each expert
  static constexpr auto members() {
    using P = ExpertWeightOnlyParams;
    return std::tuple(&P::experts, &P::strict, &P::matrix);
  }
};

}  // namespace lathe::cpu::gemm
