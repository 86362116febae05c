// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/contraction/contraction.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using contraction::kColumns;
using contraction::kDepth;

// kHeight rows of a by two vectors of columns, whose sums stay in registers.
template <class T, int kHeight>
void multiply_tile(const T* a, const T* b, T* sums, int64_t depth) {
  typedef T Lanes __attribute__((vector_size(kVecBytes), aligned(alignof(T)), may_alias));
  constexpr int64_t kWidth = kVecBytes / sizeof(T);
  Lanes left[kHeight], right[kHeight];
  LATHE_UNROLL
  for (int r = 0; r < kHeight; ++r) {
    left[r] = *reinterpret_cast<const Lanes*>(sums + r * kColumns);
    right[r] = *reinterpret_cast<const Lanes*>(sums + r * kColumns + kWidth);
  }
  for (int64_t k = 0; k < depth; ++k) {
    const Lanes b_left = *reinterpret_cast<const Lanes*>(b + k * kColumns);
    const Lanes b_right = *reinterpret_cast<const Lanes*>(b + k * kColumns + kWidth);
    LATHE_UNROLL
    for (int r = 0; r < kHeight; ++r) {
      const T x = a[r * kDepth + k];
      left[r] += x * b_left;
      right[r] += x * b_right;
    }
  }
  LATHE_UNROLL
  for (int r = 0; r < kHeight; ++r) {
    *reinterpret_cast<Lanes*>(sums + r * kColumns) = left[r];
    *reinterpret_cast<Lanes*>(sums + r * kColumns + kWidth) = right[r];
  }
}

template <class T>
void multiply(const void* a, const void* b, void* sums, int64_t rows, int64_t depth, int64_t columns) {
  constexpr int64_t kTile = 4, kStep = 2 * kVecBytes / sizeof(T);
  static_assert(kColumns % kStep == 0);
  const T *from_a = static_cast<const T*>(a), *from_b = static_cast<const T*>(b);
  T* to = static_cast<T*>(sums);
  for (int64_t c = 0; c < columns; c += kStep) {
    int64_t r = 0;
    for (; r + kTile <= rows; r += kTile)
      multiply_tile<T, kTile>(from_a + r * kDepth, from_b + c, to + r * kColumns + c, depth);
    for (; r < rows; ++r) multiply_tile<T, 1>(from_a + r * kDepth, from_b + c, to + r * kColumns + c, depth);
  }
}

}  // namespace

void multiply_blocks(DType lane, const void* a, const void* b, void* sums, int64_t rows, int64_t depth,
                     int64_t columns) {
  switch (lane) {
    case DType::f64:
      return multiply<double>(a, b, sums, rows, depth, columns);
    case DType::u32:
      return multiply<uint32_t>(a, b, sums, rows, depth, columns);
    case DType::u64:
      return multiply<uint64_t>(a, b, sums, rows, depth, columns);
    default:
      return multiply<float>(a, b, sums, rows, depth, columns);
  }
}

}  // namespace lathe::cpu::LATHE_ISA
