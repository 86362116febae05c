// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/transpose.h"

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

// Lanes i, i + L, ... of the pair (a, b): one step of a transposition that interleaves the halves.
#if defined(LATHE_ISA_LEVEL_avx512)
LATHE_INLINE Vec low_halves(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
LATHE_INLINE Vec high_halves(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
#elif defined(LATHE_ISA_LEVEL_avx2)
LATHE_INLINE Vec low_halves(Vec a, Vec b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
LATHE_INLINE Vec high_halves(Vec a, Vec b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
#else
LATHE_INLINE Vec low_halves(Vec a, Vec b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
LATHE_INLINE Vec high_halves(Vec a, Vec b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
#endif

// Interleaving row i with row i + L/2, for all i, log2(L) times, transposes L x L.
LATHE_INLINE void transpose_registers(Vec (&v)[kLanes]) {
  Vec w[kLanes];
#pragma GCC unroll 8
  for (int step = 1; step < kLanes; step *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes / 2; ++i) {
      w[2 * i] = low_halves(v[i], v[i + kLanes / 2]);
      w[2 * i + 1] = high_halves(v[i], v[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) v[i] = w[i];
  }
}

void transpose_full(float* target, int64_t target_stride, const float* source, int64_t source_stride) {
  Vec v[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) v[i] = load(source + i * source_stride);
  transpose_registers(v);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store(target + i * target_stride, v[i]);
}

void transpose_part(float* target, int64_t target_stride, const float* source, int64_t source_stride, int rows,
                    int columns) {
  Vec v[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) v[i] = i < columns ? load_tail(source + i * source_stride, rows) : zero();
  transpose_registers(v);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i)
    if (i < rows) store_tail(target + i * target_stride, columns, v[i]);
}

}  // namespace

void transpose_floats(float* target, int64_t target_stride, const float* source, int64_t source_stride, int64_t rows,
                      int64_t columns) {
  constexpr int64_t kNarrow = 4;  // where most lanes would be idle
  if (rows <= kNarrow || columns <= kNarrow) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        __builtin_memcpy(target + r * target_stride + c, source + c * source_stride + r, sizeof(float));
    return;
  }
  for (int64_t c = 0; c < columns; c += kLanes)
    for (int64_t r = 0; r < rows; r += kLanes) {
      float* out = target + r * target_stride + c;
      const float* in = source + c * source_stride + r;
      if (rows - r >= kLanes && columns - c >= kLanes)
        transpose_full(out, target_stride, in, source_stride);
      else
        transpose_part(out, target_stride, in, source_stride, static_cast<int>(rows - r < kLanes ? rows - r : kLanes),
                       static_cast<int>(columns - c < kLanes ? columns - c : kLanes));
    }
}

}  // namespace lathe::cpu::LATHE_ISA
