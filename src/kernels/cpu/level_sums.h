// SPDX-License-Identifier: Apache-2.0
// Weighted sums of dequantised levels, for kernels that read windows of 8-bit integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// What levels of a kernel's input are worth: (level - zero) * scale, an f32; without a scale they are no such levels.
struct ByteScale {
  float zero = 0, scale = 0;
  bool is_given() const { return scale != 0; }
  static constexpr auto members() { return std::tuple(&ByteScale::zero, &ByteScale::scale); }
};

// Rows of as many taps each, which are runs of levels.
struct LevelSum {
  const std::byte* const* taps;  // of a row after the other
  const double* weights;         // of the taps of a row; null = 1 each
  int64_t count;                 // of them
  const double* row_weights;     // null = 1 each
  int64_t rows;
  bool is_signed;
  ByteScale levels;
  double divisor;
};

// y[c] = sum over r of row_weights[r] * (sum over t of weights[t] * levels[r][t][c]) / divisor, in f64 and in this
// order, as the plain evaluation has it: not a bit is another.
LATHE_ISA_DECLARE(void sum_levels(const LevelSum& sum, int64_t n, float* y))

}  // namespace lathe::cpu
