// SPDX-License-Identifier: Apache-2.0
// Packed weights as matrices of the type that is multiplied, for kernels that read them often: each warp has a panel of
// a slice of columns, as those of products do.
#pragma once

#include "gemm_weight_only/gemm_weight_only.cuh"

namespace weight_only {

// Of one column a lane has 16 neighbours, as two vectors, and the next lane has the next 16. The even lane of two gets
// the first vector of both, the odd one the second: what lanes then write together are whole sectors of memory.
LATHE_DEVICE void share_sectors(Vec<uint32, 4> (&halves)[2]) {
  const bool is_odd = lane() % 2;
  LATHE_UNROLL
  for (int i = 0; i < 4; ++i) {
    uint32 &first = halves[0].at[i], &second = halves[1].at[i];
    const uint32 got = shuffle_xor(is_odd ? first : second, 1);
    first = is_odd ? got : first, second = is_odd ? second : got;
  }
}

// Matrices of kN columns, one behind the other. `wide` is K-major, with columns at a pitch of whole vectors.
template <class Columns, class T, int kN, int kK, int kWarps>
LATHE_DEVICE void dequantize(const typename Columns::Weights& weights, long slices, T* wide) {
  constexpr int kPanels = (kK + 63) / 64, kSlices = (kN + 15) / 16, kPitch = (kK + 7) / 8 * 8;
  const long place = static_cast<long>(block_x()) * kWarps + warp(), slice = place / kPanels;
  if (slice >= slices) return;
  const int first = static_cast<int>(place % kPanels);
  typename Columns::Panel panel;
  Columns(weights, slice * 16, first).fetch(panel, 0);
  unsigned pairs[4][4];
  LATHE_UNROLL
  for (int step = 0; step < 4; ++step) Columns::operand_of(pairs[step], panel, step);
  const int n = static_cast<int>(slice % kSlices) * 16 + lane() / 4;
  const int k = first * 64 + lane() % 4 / 2 * 32 + lane() % 2 * 8;
  T* const to = wide + (slice / kSlices * kN + n) * kPitch + k;
  dependency_wait();
  LATHE_UNROLL
  for (int c = 0; c < 2; ++c) {
    Vec<uint32, 4> halves[2];
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const auto &low = pairs[half * 2], &high = pairs[half * 2 + 1];
      halves[half] = {{low[c], low[c + 2], high[c], high[c + 2]}};
    }
    share_sectors(halves);
    const bool has_column = kN % 16 == 0 || n + c * 8 < kN;
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half)
      if (has_column && (kK % 64 == 0 || k + half * 16 < kK))
        *reinterpret_cast<Vec<uint32, 4>*>(to + c * 8L * kPitch + half * 16) = halves[half];
  }
}

}  // namespace weight_only
