// SPDX-License-Identifier: Apache-2.0
// A warp's sums as matrix units leave them: in tiles of 16 rows and 8 columns, of which a thread has two neighbours in
// one row and two in the row eight below.
#pragma once

#include "lib/intrinsics.cuh"

namespace gemm {

// Where a column lies in a staged row: groups of four are permuted within 16, so that threads that read 4, 8 or 16
// neighbours each, four at once, hit all banks.
LATHE_DEVICE int staged_column(int column) { return column ^ (column >> 5 & 3) << 2; }

template <class Sum, int kRowTiles, int kColumnTiles>
LATHE_DEVICE void clear_sums(Sum (&sums)[kRowTiles][kColumnTiles][4]) {
  LATHE_UNROLL
  for (int i = 0; i < kRowTiles; ++i) LATHE_UNROLL
  for (int j = 0; j < kColumnTiles; ++j) LATHE_UNROLL
  for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
}

// Writes rows [first, first + rows) to shared memory.
template <class Sum, int kRowTiles, int kColumnTiles>
LATHE_DEVICE void stage_sums(const Sum (&sums)[kRowTiles][kColumnTiles][4], Sum* to, int pitch, int first, int rows) {
  using Pair = Vec<Sum, 2>;
  LATHE_UNROLL
  for (int i = 0; i < kRowTiles; ++i) {
    if (i * 16 < first || i * 16 >= first + rows) continue;
    Sum* row = to + (i * 16 - first + lane() / 4) * pitch;
    LATHE_UNROLL
    for (int j = 0; j < kColumnTiles; ++j) {
      const int column = staged_column(j * 8 + lane() % 4 * 2);
      *reinterpret_cast<Pair*>(row + column) = {sums[i][j][0], sums[i][j][1]};
      *reinterpret_cast<Pair*>(row + column + 8 * pitch) = {sums[i][j][2], sums[i][j][3]};
    }
  }
}

}  // namespace gemm
