// SPDX-License-Identifier: Apache-2.0
// Rows of A as integers, whose bytes are multiplied by codes: sums of such products are exact, and vectors hold four
// times as many bytes as floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_weight_only/gemm_weight_only.h"

namespace lathe::cpu::gemm {

// Up to 32 neighbours along K of a row, in one block of B. They are integers of 31 bits times `unit`, a power of two:
// what is at least 1/64 of the largest is kept as it is, the rest to 2^-30 of the largest.
struct DigitGroup {
  static constexpr int kDepth = 32, kPlaces = 4;
  float unit;
  int32_t unused[3];
  int32_t sums[kPlaces];  // of the digits of each place, negative, times 8, 12 or 128 where that is all columns' zero
  // Digits from -128 to 127, lowest place first: for each place, those of the numbers that meet one byte each of a word
  // of codes. Of codes of 4 bits those at even positions come first, then those at odd ones.
  int32_t digits[kDepth];
};

struct DigitKernel {
  int most_rows;  // more are faster as floats, for which codes are unpacked once for all
  // False where an element is infinite or no number, or a group is of numbers below 2^-97, of which some are
  // not 0; 2^-96 where codes are floats.
  bool (*split)(const PackedPanels& panels, const float* row, DigitGroup* groups);
  // sums[r][64] = row r times the panel. A row's groups lie `stride` behind those of the row before.
  void (*multiply)(const PackedPanels& panels, const std::byte* panel, const DigitGroup* groups, int64_t stride,
                   int rows, float* sums);
};

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
// Null where floats are as fast.
LATHE_ISA_DECLARE(const gemm::DigitKernel* digit_kernel(const gemm::PackedPanels& panels, bool multiplies_bytes))
}  // namespace lathe::cpu
