// SPDX-License-Identifier: Apache-2.0
// Levels from sums of products of integers, by FoldedScales. For *_simd.cpp files, like simd.h.
#pragma once

#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/simd_levels.h"

namespace lathe::cpu::LATHE_ISA {

// x / scale of an x that was clamped to what a few levels are worth. It is a true quotient: its rounding error is
// computed and added.
struct Quotient {
  explicit LATHE_INLINE Quotient(const gemm::Rounding& rounding)
      : scale(broadcast(rounding.scale)), factor(broadcast(1 / rounding.scale)) {}
  LATHE_INLINE Vec operator()(Vec x) const {
    const Vec quotient = x * factor;
    return mul_add(x - quotient * scale, factor, quotient);
  }
  Vec scale, factor;
};

// A product that is rounded before it is added to something: else -ffp-contract=fast makes one rounding of both.
LATHE_INLINE Vec rounded(Vec product) {
#if defined(__x86_64__)
  asm("" : "+v"(product));
#else
  asm("" : "+m"(product));
#endif
  return product;
}

// T: the residual's type, void where there is none.
template <bool kHasBetween, class T>
struct FoldedLevels {
  static constexpr bool kAddsLevels = kHasBetween && !std::is_void_v<T> && !std::is_same_v<T, float>;
  explicit LATHE_INLINE FoldedLevels(const gemm::FoldedScales& folded)
      : packing(folded.zero, folded.least, folded.most, folded.flip),
        quotient(folded.quotient),
        residual_scale(broadcast(folded.residual_scale)),
        residual_zero(broadcast(folded.residual_zero)),
        step(broadcast(folded.step)),
        shift(broadcast(folded.shift)),
        low(broadcast(folded.low)),
        high(broadcast(folded.high)) {}

  // A vector of them, from sums without their zero points and from `lanes` residuals.
  LATHE_INLINE IntVec operator()(IntVec sum, Vec scale, Vec offset, [[maybe_unused]] const T* residual,
                                 [[maybe_unused]] int lanes) const {
    Vec value = to_float(sum) * scale + offset;
    if constexpr (kHasBetween) value = round_even(min_or_second(high, max_or_second(low, value))) * step;
    if constexpr (kAddsLevels)
      return round_to_int(
          quotient(rounded(value) + rounded((load_levels(residual, lanes) - residual_zero) * residual_scale)));
    if constexpr (kHasBetween) value += shift;
    if constexpr (std::is_same_v<T, float>)
      // Above are no levels, and i32 end.
      value = min_or_second(broadcast(0x1p30f), load_tail(residual, lanes) * residual_scale + value);
    else if constexpr (!std::is_void_v<T>)
      value = load_levels(residual, lanes) * residual_scale + value;
    return round_to_int(value);
  }

  BytePacking packing;
  Quotient quotient;
  Vec residual_scale, residual_zero, step, shift, low, high;
};

// The residuals of a row from a column on.
template <class T>
LATHE_INLINE const T* residuals_at(const gemm::IntegerEpilogue& integers, const TileRows& where, int row,
                                   int64_t column) {
  if constexpr (std::is_void_v<T>)
    return nullptr;
  else
    return reinterpret_cast<const T*>(where.operand[integers.residual][row]) + column;
}

}  // namespace lathe::cpu::LATHE_ISA
