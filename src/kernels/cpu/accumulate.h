// SPDX-License-Identifier: Apache-2.0
// Sums, extremes and products along contiguous rows, or down the columns of a strided matrix. Sums are taken in blocks,
// so that their error does not grow with the length.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace lathe::cpu {

enum class Accumulation {
  sum,
  sum_abs,
  sum_squares,  // of x - shift
  sum_exp,      // of x - shift
  maximum,      // NaN if any is
  minimum,
  product,
};

constexpr float start_of(Accumulation kind) {
  return kind == Accumulation::maximum   ? -__builtin_inff()
         : kind == Accumulation::minimum ? __builtin_inff()
         : kind == Accumulation::product ? 1.0f
                                         : 0.0f;
}

// `total` continued with n contiguous elements.
LATHE_ISA_DECLARE(double accumulate_row(Accumulation kind, double total, const float* data, int64_t n, float shift))

// totals[c] continued with data[r * row_stride + c] for each row r. shifts may be null, meaning 0.
LATHE_ISA_DECLARE(void accumulate_columns(Accumulation kind, float* totals, const float* shifts, const float* data,
                                          int64_t rows, int64_t row_stride, int64_t columns))

}  // namespace lathe::cpu
