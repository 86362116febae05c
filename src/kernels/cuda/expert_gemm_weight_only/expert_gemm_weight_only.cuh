// SPDX-License-Identifier: Apache-2.0
// Rows times the matrices of their experts, of 4 and 8 bits, which stream through registers as those of products do.
#pragma once

#include "expert_gemm/expert_gemm.cuh"
#include "gemm_weight_only/gemm_weight_only.cuh"

namespace expert_gemm {

// The rows of a part, as gemv::Rows has those of a matrix. The last dimension of X is K.
template <class X>
struct StreamedRows {
  using Type = typename X::Type;
  const X* x;
  const int* order;
  long stride, m;
  int k;
  LATHE_DEVICE_MEMBER const Type* at(long row) const {
    return x->data + gemm::place_of<0, X::kRank - 1>(*x, static_cast<unsigned>(order[row]));
  }
};

}  // namespace expert_gemm
