// SPDX-License-Identifier: Apache-2.0
// States (of a monoid of lib/reduce.cuh) that several blocks have computed of parts of the same rows: the last block
// merges them, in the order of the parts. `shared` is as reduce_row() and reduce_columns() need it.
#pragma once

#include "lib/accumulate.cuh"
#include "lib/last_block.cuh"

// How many parts a thread reads at once.
inline constexpr int kPartsAtOnce = 4;

// Parts first, first + step, ... of W neighbouring columns; columns of all rows lie side by side, parts after another.
template <int Splits, int W, class Monoid>
LATHE_DEVICE void merge_parts(const Monoid& monoid, typename Monoid::State (&into)[W],
                              const typename Monoid::State* states, long pitch, int first, int step) {
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) into[j] = monoid.start();
  for (int i = first; i < Splits; i += kPartsAtOnce * step) {
    typename Monoid::State part[kPartsAtOnce][W];
    LATHE_UNROLL
    for (int k = 0; k < kPartsAtOnce; ++k) LATHE_UNROLL
    for (int j = 0; j < W; ++j) part[k][j] = load_l2(states + (i + k * step < Splits ? i + k * step : i) * pitch + j);
    LATHE_UNROLL
    for (int k = 0; k < kPartsAtOnce; ++k) LATHE_UNROLL
    for (int j = 0; j < W; ++j)
      if (i + k * step < Splits) monoid.merge(into[j], part[k][j]);
  }
}

// Of row block_x(), whose part block_y() the block has in `state`, on a grid (rows, Splits). True in the last block of
// the row, all of whose threads have the whole row's state then. states[row][part], a counter for each row.
template <int Threads, int Splits, class Monoid>
LATHE_DEVICE bool merge_row(const Monoid& monoid, typename Monoid::State& state, typename Monoid::State* states,
                            unsigned* counters, typename Monoid::State* shared) {
  states += static_cast<long>(block_x()) * Splits;
  if (thread_x() == 0) states[block_y()] = state;
  if (!comes_last(counters + block_x(), Splits)) return false;
  typename Monoid::State merged[1];
  merge_parts<Splits>(monoid, merged, states, 1, thread_x(), Threads);
  state = merged[0];
  reduce_row<Threads>(monoid, state, shared);
  return true;
}

// The same of W neighbouring columns for each of TX threads, whose part block_y() the block has in `own`, on a grid
// (column tiles, Splits); `index` and `inside` as locate_columns() says. states[part][column], a counter for each tile.
template <int TX, int TY, int Splits, int W, class Monoid>
LATHE_DEVICE bool merge_columns(const Monoid& monoid, typename Monoid::State (&own)[W], typename Monoid::State* states,
                                unsigned* counters, long columns, long index, bool inside,
                                typename Monoid::State* shared) {
  states += index;
  if (inside && thread_x() < TX) {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) states[block_y() * columns + j] = own[j];
  }
  if (!comes_last(counters + block_x(), Splits)) return false;
  merge_parts<Splits>(monoid, own, states, columns, inside ? thread_x() / TX : Splits, TY);
  reduce_columns<TX, TY>(monoid, own, shared);
  return true;
}
