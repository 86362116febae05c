// SPDX-License-Identifier: Apache-2.0
// From the sums of a group of four warps to the output, straight from registers.
#pragma once

#include "gemm/row_sink.cuh"

namespace gemm {

// Gives vectors to the sink: v[2 * i] of row `row`, v[2 * i + 1] of the one eight below, `step` columns after each
// other.
template <bool kWhole, int W, int N, class Sum, class Sink>
LATHE_DEVICE void sink_vectors(const Sink& sink, Sum (&v)[N][W], long row, long rows, long column, long columns,
                               int step) {
  long m[N], n[N];
  int count[N];
  bool wanted[N];
  LATHE_UNROLL
  for (int k = 0; k < N; ++k) {
    m[k] = row + k % 2 * 8, n[k] = column + k / 2 * step;
    wanted[k] = m[k] < rows && n[k] < columns;
    if (m[k] >= rows) m[k] = rows - 1;
    if (n[k] >= columns) n[k] = (columns - 1) / W * W;
    count[k] = kWhole ? W : min_of(columns - n[k], W);
  }
  if constexpr (Sink::kSeveral) {
    float values[N][W];
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) LATHE_UNROLL
    for (int i = 0; i < W; ++i) values[k][i] = static_cast<float>(v[k][i]);
    if constexpr (kByRows<Sink>)
      sink.put_rows_of_warp(values, m, n, count, row, rows, column, columns, step);
    else
      sink.put_several(values, m, n, count, wanted);
  } else {
    LATHE_UNROLL
    for (int k = 0; k < N; ++k)
      if (wanted[k]) sink.put(v[k], m[k], n[k], count[k]);
  }
}

// Two threads, the `bit` of whose numbers differs, have a[0..C) and b[0..C) of different parts: afterwards the first
// has both parts of a, and the second of b.
template <int C, class Sum>
LATHE_DEVICE void exchange(Sum* a, Sum* b, int bit) {
  const bool second = (lane() & bit) != 0;
  LATHE_UNROLL
  for (int i = 0; i < C; ++i) {
    const Sum other = shuffle_xor(second ? a[i] : b[i], bit);
    if (second)
      a[i] = other;
    else
      b[i] = other;
  }
}

// Parts of a tile's sums, kAtOnce from `first` on: W neighbouring columns of two rows each for a thread. Four
// neighbouring threads have two columns of each 8 in a row, and exchange them, if they are no neighbours already.
template <int W, bool kWhole, int kNeighbours, int kAtOnce, class Tile, class Sink>
LATHE_DEVICE void store_groups(const Tile& tile, int first, const Sink& sink, long row, long rows, long column,
                               long columns) {
  constexpr int kTiles = W / 2, kGroups = Tile::kN / 8 / kTiles;  // of 64 rows
  typename Tile::Accumulator v[2 * kAtOnce][W];
  LATHE_UNROLL
  for (int i = 0; i < Tile::kRowTiles * kGroups; ++i) {  // registers have no index
    if (i / kAtOnce * kAtOnce != first) continue;
    LATHE_UNROLL
    for (int t = 0; t < kTiles; ++t) LATHE_UNROLL
    for (int e = 0; e < 4; ++e)
      v[i % kAtOnce * 2 + e / 2][t * 2 + e % 2] = tile.acc[i / kGroups][i % kGroups * kTiles + t][e];
  }
  LATHE_UNROLL
  for (int k = 0; kNeighbours == 0 && k < 2 * kAtOnce; ++k) {
    LATHE_UNROLL
    for (int pair = 0; pair < W / 4; ++pair) exchange<2>(v[k] + pair * 4, v[k] + pair * 4 + 2, 1);
    if constexpr (W == 8) exchange<4>(v[k], v[k] + 4, 2);
  }
  sink_vectors<kWhole>(sink, v, row + first / kGroups * 64, rows, column + first % kGroups * 8 * kTiles, columns,
                       8 * kTiles);
}

// Gives the sums that a group has, from `row` on, to the sink. The program stands in the code for each part of them
// when it is short, or there are few: else each sum is selected from among those of all parts, as registers have no
// index. Operands of kMost parts at most are on the way at the same time.
template <int W, bool kWhole, bool kShort, int kNeighbours = 0, int kMost = 2, class Tile, class Sink>
LATHE_DEVICE void store_quads(const Tile& tile, const Sink& sink, long row, long rows, long column, long columns) {
  static_assert(kNeighbours > 0 ? W == kNeighbours : W == 2 || W == 4 || W == 8,
                "what two, or four, threads have of a row");
  constexpr int kGroups = Tile::kRowTiles * Tile::kN / 4 / W;
  // Of two tiles of rows and narrow vectors, the places of as many need more registers than there are.
  constexpr bool kFit = Tile::kRowTiles == 1 || W == 8;
  constexpr bool kUnrolled = kShort || (W >= 8 && kGroups * W <= 64);
  // So many vectors of operands must fit in registers for several parts to be loaded at once. Unrolled parts are
  // addressed without registers of their own, and leave room with fewer.
  constexpr int kLeast = kUnrolled ? 2 : 4;
  constexpr int kAtOnce = Sink::kAtOnce >= kLeast && kFit && Tile::kN / 4 / W % kMost == 0 ? kMost : 1;
  row += Tile::warp_row() + lane() / 4;
  column += column_of_four<W>();
  if constexpr (kUnrolled) {
    LATHE_UNROLL
    for (int group = 0; group < kGroups; group += kAtOnce)
      store_groups<W, kWhole, kNeighbours, kAtOnce>(tile, group, sink, row, rows, column, columns);
  } else {
    LATHE_NO_UNROLL
    for (int group = 0; group < kGroups; group += kAtOnce)
      store_groups<W, kWhole, kNeighbours, kAtOnce>(tile, group, sink, row, rows, column, columns);
  }
}

}  // namespace gemm
