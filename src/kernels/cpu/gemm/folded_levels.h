// SPDX-License-Identifier: Apache-2.0
// Levels from sums of products of integers, by FoldedScales. For *_simd.cpp files, like simd.h.
#pragma once

#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/simd_levels.h"

namespace lathe::cpu::LATHE_ISA {

template <class T>
constexpr bool is_levels = std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t>;

// What is added to a level, or to levels between.
enum class Between { none, folded, divided };

// T: the residual's type, void where there is none. divided: FoldedScales::divides.
template <Between kBetween, class T>
struct FoldedLevels {
  static constexpr bool kHasBetween = kBetween != Between::none;
  explicit LATHE_INLINE FoldedLevels(const gemm::FoldedScales& folded)
      : packing(folded.zero, folded.least, folded.most, folded.flip),
        quotient(folded.quotient.scale),
        residual_scale(broadcast(folded.residual_scale)),
        step(broadcast(folded.step)),
        shift(broadcast(folded.shift)),
        residual_zero(broadcast_int(static_cast<int32_t>(folded.residual_zero))),
        low(broadcast_int(static_cast<int32_t>(folded.low))),
        high(broadcast_int(static_cast<int32_t>(folded.high))) {}

  // A vector of them, from sums without their zero points and from `lanes` residuals.
  LATHE_INLINE IntVec operator()(IntVec sum, Vec scale, Vec offset, [[maybe_unused]] const T* residual,
                                 [[maybe_unused]] int lanes) const {
    Vec value = to_float(sum) * scale + offset;
    if constexpr (kHasBetween) value = to_float(min_int(high, max_int(low, round_to_int(value)))) * step;
    if constexpr (kBetween == Between::divided)
      return round_to_int(
          quotient(rounded(value) + rounded(to_float(load_bytes(residual, lanes) - residual_zero) * residual_scale)));
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
  Vec residual_scale, step, shift;
  IntVec residual_zero, low, high;
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
