// SPDX-License-Identifier: Apache-2.0
// Products of f32 in matrix registers of bf16. A float is the sum of three bf16, its terms: the first has the upper 8
// bits of the significand, the second the 8 behind them, the third the rest. Of the nine products of two floats' terms
// six are added, the largest; the others are less than 2^-23 of the whole, as the rounding of a sum of floats is. A
// register multiplies 16 times as many bf16 in a clock as vectors do floats, so that six products take less than half
// the time (docs/decisions/0112-floats-of-three-terms.md).
//
// Floats that are no numbers, infinite, or too large for the first term, have a term that is no number, so that their
// sums are none either: who multiplies makes those again in floats. Terms below 2^-126 are zeros to the registers: of
// factors below 2^-110 the last ones are lost.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/gemm/tile.h"

namespace lathe::cpu::gemm {

inline constexpr int64_t kTerms = 3;
inline constexpr int64_t kSplitDepth = 2 * kMatrixRegisterRows;    // of K, in a register: a step
inline constexpr int64_t kSplitColumns = 2 * kMatrixRegisterRows;  // of a tile

// A tile's factors, split. Of A blocks of `height` rows by 32 of K: [step][term][height][32], of B registers of 32 of K
// by 16 columns: [step][term][halves][16 pairs of rows][16 columns][2].
struct SplitTile {
  const float* a;
  int64_t a_next;  // floats to the same of the next `height` rows
  int height;
  int blocks;  // of rows: 1 or 2
  const float* b;
  int halves;  // 1 or 2, of 16 columns
  int64_t steps;
  float* sums;
  int64_t stride;     // of sums, from row to row
  bool adds;          // to the sums that are there
  const float* next;  // rows of B that are split next, `next_stride` floats apart: so many are fetched in each step
  int64_t next_stride;
  int next_rows;
  int* configured;  // see Tile::configured
};

struct SplitFunctions {
  // A row of A; zeros behind its end. `block`: floats of a block.
  void (*split_row)(const float* row, int64_t count, int64_t steps, float* to, int64_t block);
  // `rows` rows of B, of 16 x halves columns that are `stride` floats from row to row; zeros behind the last.
  void (*split_columns)(const float* b, int64_t stride, int64_t rows, int64_t steps, int halves, float* to);
  void (*multiply)(const SplitTile& tile);
  // Whether all are numbers.
  bool (*are_finite)(const float* sums, int64_t stride, int rows, int halves);
  void (*leave)();  // as TileTable::leave
};

// Those of this CPU; null where it has no matrix registers.
const SplitFunctions* usable_split_functions();

// How rows and K are cut so that the terms of both factors stay in the second cache.
struct SplitBlocks {
  static constexpr int64_t kBytesOfA = 5 << 18, kMostSteps = 24;  // of a block: terms, and steps of K
  SplitBlocks(int64_t rows, int64_t k) : steps(ceil_div(k, kSplitDepth)) {
    constexpr int64_t kMostRows = 1024;
    k_blocks = std::max<int64_t>(ceil_div(steps, kMostSteps), 1);
    block_steps = ceil_div(steps, k_blocks);
    const int64_t row_bytes = block_steps * kSplitDepth * kTerms * 2;
    constexpr int64_t kTile = 2 * kMatrixRegisterRows;
    most_rows = std::min(kMostRows, kBytesOfA / std::max<int64_t>(row_bytes, 1) / kTile * kTile);
    const int64_t count = std::max<int64_t>(ceil_div(rows, most_rows), 1);
    row_block = count == 1 ? rows : round_up(ceil_div(rows, count), kTile);
  }
  int64_t row_floats() const { return steps * kSplitDepth * kTerms / 2; }  // of the terms of a row of A

  int64_t steps, k_blocks, block_steps;  // of K, and of its blocks
  int64_t most_rows, row_block;
};

// Clocks of a core: six products of 512 in a clock and what they wait for, and the splitting of B for each block of
// rows and of A.
inline double split_clocks(int64_t rows, int64_t n, int64_t k) {
  const SplitBlocks blocks(rows, k);
  const auto all_rows = static_cast<double>(round_up<int64_t>(rows, kMatrixRegisterRows));
  const auto columns = static_cast<double>(round_up<int64_t>(n, kMatrixRegisterRows));
  const auto depth = static_cast<double>(blocks.steps * kSplitDepth);
  const auto times = static_cast<double>(ceil_div(rows, std::max<int64_t>(blocks.row_block, 1)));
  return depth * (all_rows * columns * 6 / 512 * 1.65 + times * columns * 0.75 + all_rows * 0.5);
}

// Whether that is less than what vectors take, which multiply 32 in a clock at best.
inline bool pays_to_split(int64_t rows, int64_t n, int64_t k) {
  return k >= kSplitDepth && split_clocks(rows, n, k) < static_cast<double>(rows * k) * static_cast<double>(n) / 26;
}

// How threads share a product: by columns where there are enough panels, so that each column of B is split once. Rows
// and columns of one of them.
struct SplitShare {
  SplitShare(int64_t rows, const Panels& panels, bool split_columns, int threads)
      : by_columns(split_columns || panels.count() >= 2 * threads),
        rows(by_columns ? rows : ceil_div<int64_t>(rows, threads)),
        columns(by_columns ? ceil_div<int64_t>(panels.count(), threads) * panels.width : panels.n) {}
  bool pays(int64_t k) const { return pays_to_split(rows, columns, k); }

  bool by_columns;
  int64_t rows, columns;
};

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
// Null where the level has none.
LATHE_ISA_DECLARE(const gemm::SplitFunctions* split_functions())
}  // namespace lathe::cpu
