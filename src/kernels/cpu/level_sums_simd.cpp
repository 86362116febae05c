// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/level_sums.h"

#include "kernels/cpu/simd_levels.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

constexpr int kHalf = kLanes / 2;
typedef double Doubles __attribute__((vector_size(kHalf * sizeof(double))));
typedef float HalfFloats __attribute__((vector_size(kHalf * sizeof(float))));

// kVectors vectors of which the last has `lanes` elements.
template <class T, int kVectors>
LATHE_INLINE void sum_columns(const LevelSum& sum, int64_t c, int lanes, float* y) {
  Doubles totals[kVectors][2] = {};
  const Vec zero = broadcast(sum.levels.zero), scale = broadcast(sum.levels.scale);
  const std::byte* const* taps = sum.taps;
  for (int64_t r = 0; r < sum.rows; ++r) {
    Doubles row[kVectors][2] = {};
    for (int64_t t = 0; t < sum.count; ++t, ++taps) {
      const Doubles weight = Doubles{} + (sum.weights ? sum.weights[t] : 1);
      LATHE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const T* levels = reinterpret_cast<const T*>(*taps) + c + v * kLanes;
        const Vec values = (load_levels(levels, kVectors > 1 ? kLanes : lanes) - zero) * scale;
        HalfFloats halves[2];
        __builtin_memcpy(halves, &values, sizeof(values));
        LATHE_UNROLL
        for (int h = 0; h < 2; ++h) row[v][h] += rounded(__builtin_convertvector(halves[h], Doubles) * weight);
      }
    }
    const Doubles weight = Doubles{} + (sum.row_weights ? sum.row_weights[r] : 1);
    LATHE_UNROLL
    for (int v = 0; v < kVectors; ++v) LATHE_UNROLL
    for (int h = 0; h < 2; ++h) totals[v][h] += rounded(row[v][h] * weight);
  }
  LATHE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    HalfFloats halves[2];
    LATHE_UNROLL
    for (int h = 0; h < 2; ++h) halves[h] = __builtin_convertvector(totals[v][h] / sum.divisor, HalfFloats);
    Vec values;
    __builtin_memcpy(&values, halves, sizeof(values));
    if (kVectors > 1 || lanes == kLanes)
      store(y + c + v * kLanes, values);
    else
      store_tail(y + c + v * kLanes, lanes, values);
  }
}

template <class T>
void sum_all(const LevelSum& sum, int64_t n, float* y) {
  int64_t c = 0;
  for (; c + 2 * kLanes <= n; c += 2 * kLanes) sum_columns<T, 2>(sum, c, kLanes, y);
  for (; c < n; c += kLanes) sum_columns<T, 1>(sum, c, n - c < kLanes ? static_cast<int>(n - c) : kLanes, y);
}

}  // namespace

void sum_levels(const LevelSum& sum, int64_t n, float* y) {
  (sum.is_signed ? sum_all<int8_t> : sum_all<uint8_t>)(sum, n, y);
}

}  // namespace lathe::cpu::LATHE_ISA
