// SPDX-License-Identifier: Apache-2.0
// Packed weights as matrices of the type that is multiplied, for kernels that read them often: each warp has a panel of
// a slice of columns, as those of products do.
#pragma once

#include "gemm_weight_only/gemm_weight_only.cuh"

namespace weight_only {

// Matrices of kN columns, one behind the other. `wide` is K-major, with columns at a pitch of whole vectors.
template <class Columns, class T, int kN, int kK, int kWarps>
LATHE_DEVICE void dequantize(const typename Columns::Weights& weights, long slices, T* wide) {
  constexpr int kPanels = (kK + 63) / 64, kSlices = (kN + 15) / 16, kVector = 8, kPitch = (kK + 7) / 8 * 8;
  const long place = static_cast<long>(block_x()) * kWarps + warp(), slice = place / kPanels;
  if (slice >= slices) return;
  const int first = static_cast<int>(place % kPanels);
  typename Columns::Panel panel;
  Columns(weights, slice * 16, first).fetch(panel, 0);
  unsigned pairs[4][4];
  LATHE_UNROLL
  for (int step = 0; step < 4; ++step) Columns::operand_of(pairs[step], panel, step);
  const int n = static_cast<int>(slice % kSlices) * 16 + lane() / 4, k = first * 64 + lane() % 4 * 16;
  T* const to = wide + (slice / kSlices * kN + n) * kPitch + k;
  dependency_wait();
  LATHE_UNROLL
  for (int c = 0; c < 2; ++c) LATHE_UNROLL
  for (int half = 0; half < 2; ++half) {
    if (n + c * 8 >= kN || k + half * kVector >= kK) continue;
    const auto& low = pairs[half * 2];
    const auto& high = pairs[half * 2 + 1];
    *reinterpret_cast<Vec<uint32, 4>*>(to + c * 8L * kPitch +
                                       half * kVector) = {{low[c], low[c + 2], high[c], high[c + 2]}};
  }
}

}  // namespace weight_only
