// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize/resize.h"

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

template <int vectors>
LATHE_INLINE int64_t blend(const float* const* taps, const float* weights, int count, int64_t c, int64_t n, float* y) {
  for (; c + vectors * kLanes <= n; c += vectors * kLanes) {
    Vec sums[vectors];
    const Vec first = broadcast(weights[0]);
    for (int v = 0; v < vectors; ++v) sums[v] = first * load(taps[0] + c + v * kLanes);
    for (int t = 1; t < count; ++t) {
      const Vec weight = broadcast(weights[t]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[v] += weight * load(taps[t] + c + v * kLanes);
    }
    for (int v = 0; v < vectors; ++v) store(y + c + v * kLanes, sums[v]);
  }
  return c;
}

template <int taps>
void gather_fixed(const float* row, const int32_t* index, const float* weights, int64_t n, float* y, int64_t y_stride) {
  for (int64_t j = 0; j < n; ++j) {
    float sum = weights[j * taps] * row[index[j * taps]];
#pragma GCC unroll 4
    for (int t = 1; t < taps; ++t) sum += weights[j * taps + t] * row[index[j * taps + t]];
    y[j * y_stride] = sum;
  }
}

}  // namespace

void gather_row(const float* row, const int32_t* index, const float* weights, int64_t taps, int64_t n, float* y,
                int64_t y_stride) {
  if (taps == 1) return gather_fixed<1>(row, index, weights, n, y, y_stride);
  if (taps == 2) return gather_fixed<2>(row, index, weights, n, y, y_stride);
  if (taps == 4) return gather_fixed<4>(row, index, weights, n, y, y_stride);
  for (int64_t j = 0; j < n; ++j) {
    float sum = 0;
    for (int64_t t = 0; t < taps; ++t) sum += weights[j * taps + t] * row[index[j * taps + t]];
    y[j * y_stride] = sum;
  }
}

void blend_rows(const float* const* taps, const float* weights, int count, int64_t n, float* y) {
  int64_t c = blend<4>(taps, weights, count, 0, n, y);
  c = blend<1>(taps, weights, count, c, n, y);
  if (c == n) return;
  const int rest = static_cast<int>(n - c);
  Vec sum = weights[0] * load_tail(taps[0] + c, rest);
  for (int t = 1; t < count; ++t) sum += weights[t] * load_tail(taps[t] + c, rest);
  store_tail(y + c, rest, sum);
}

}  // namespace lathe::cpu::LATHE_ISA
