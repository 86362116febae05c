// SPDX-License-Identifier: Apache-2.0
// Reductions of rows to one element each: of rows along the dimension with stride 1, and of rows that stand side by
// side
// ("columns"). The result has the first Kept dimensions of the input, its program runs on floats only.
#pragma once

#include "lib/split_states.cuh"
#include "reduce/reductions.cuh"

// The results of W neighbouring rows, those at c, c + 1, ... along dimension Kept - 1.
template <int Kept, int W, class Out, class Fusion, class Value, int R>
LATHE_DEVICE void store_results(const Out& y, const Fusion& fusion, const Value (&results)[W], const long (&c)[R]) {
  using T = typename Out::Type;
  long at[Kept];
  LATHE_UNROLL
  for (int i = 0; i < Kept; ++i) at[i] = c[i];
  if constexpr (is_same<Value, float>) {
    float v[W];
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) v[j] = results[j];
    fusion.template apply<Kept - 1, W>(v, at, W);
    store<Kept - 1, W>(y, at, v, W);
  } else {
    T* to = y.data + offset_of(y, at);
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) {
      if constexpr (is_same<T, bool>)
        to[j * y.stride(Kept - 1)] = results[j] != Value(0);
      else if constexpr (is_same<Value, double> && !is_same<T, double>)
        to[j * y.stride(Kept - 1)] = static_cast<T>(static_cast<int64>(results[j]));
      else
        to[j * y.stride(Kept - 1)] = static_cast<T>(results[j]);
    }
  }
}

// Lanes threads for each row, Rows rows for each block; Rows is 1 when Lanes exceeds a warp.
template <int Kept, int Lanes, int Rows, int W, int Unroll, class In, class Out, class Reduction, class Fusion>
LATHE_DEVICE void reduce_rows(const In& x, const Out& y, const Reduction& reduction, const Fusion& fusion) {
  constexpr int R = In::kRank;
  const long rows = extent_of<0, Kept>(x), chunks = chunks_of<Kept, W>(x);
  const long row = static_cast<long>(block_x()) * Rows + thread_x() / Lanes;
  long c[R];
  unflatten_dims<0, Kept>(x, row < rows ? row : rows - 1, c);
  dependency_wait();
  auto state = reduction.start();
  accumulate_row<Kept, W, Unroll>(reduction, state, x, c, thread_x() % Lanes, chunks, Lanes);
  reduce_row<Lanes>(reduction, state, reinterpret_cast<typename Reduction::State*>(dynamic_shared()));
  if (row >= rows || thread_x() % Lanes != 0) return;
  const typename Reduction::Result results[1] = {reduction.finish(state, chunks * W)};
  store_results<Kept, 1>(y, fusion, results, c);
}

// Few long rows: grid (rows, Splits), a block for each part of a row.
template <int Kept, int Threads, int W, int Unroll, int Splits, class In, class Out, class Reduction, class Fusion>
LATHE_DEVICE void reduce_row_parts(const In& x, const Out& y, typename Reduction::State* states, unsigned* counters,
                                   const Reduction& reduction, const Fusion& fusion) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  const long chunks = chunks_of<Kept, W>(x);
  const Part part = part_of(chunks, block_y(), Splits);
  auto* const shared = reinterpret_cast<typename Reduction::State*>(dynamic_shared());
  dependency_wait();
  auto state = reduction.start();
  accumulate_row<Kept, W, Unroll>(reduction, state, x, c, part.begin + thread_x(), part.end, Threads);
  reduce_row<Threads>(reduction, state, shared);
  if (!merge_row<Threads, Splits>(reduction, state, states, counters, shared) || thread_x() != 0) return;
  const typename Reduction::Result results[1] = {reduction.finish(state, chunks * W)};
  store_results<Kept, 1>(y, fusion, results, c);
}

// The states of part `split` of W columns, for all threads of a column; `inside` as locate_columns says.
template <int Kept, int TX, int TY, int W, int Unroll, class In, class Reduction, int R>
LATHE_DEVICE void reduce_strip(const In& x, const Reduction& reduction, typename Reduction::State (&states)[W],
                               long (&c)[R], bool inside, Part part) {
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) states[j] = reduction.start();
  dependency_wait();
  if (inside) accumulate_columns<Kept, W, Unroll>(reduction, states, x, c, part.begin + thread_x() / TX, part.end, TY);
  reduce_columns<TX, TY>(reduction, states, reinterpret_cast<typename Reduction::State*>(dynamic_shared()));
}

// The results of W columns, by the threads that have them.
template <int Kept, int TX, int W, class Out, class Reduction, class Fusion, int R>
LATHE_DEVICE void store_columns(const Out& y, const Reduction& reduction, const Fusion& fusion,
                                const typename Reduction::State (&states)[W], long length, const long (&c)[R],
                                bool inside) {
  if (!inside || thread_x() >= TX) return;
  typename Reduction::Result results[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) results[j] = reduction.finish(states[j], length);
  store_results<Kept, W>(y, fusion, results, c);
}

// Columns, each by one block.
template <int Kept, int TX, int TY, int W, int Unroll, class In, class Out, class Reduction, class Fusion>
LATHE_DEVICE void reduce_columns_whole(const In& x, const Out& y, const Reduction& reduction, const Fusion& fusion) {
  constexpr int R = In::kRank;
  const long length = extent_of<Kept, R - Kept>(x);
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, W>(x, c, index);
  typename Reduction::State states[W];
  reduce_strip<Kept, TX, TY, W, Unroll>(x, reduction, states, c, inside, Part{0, length});
  store_columns<Kept, TX>(y, reduction, fusion, states, length, c, inside);
}

// Few columns: grid (column tiles, Splits), a block for each part of a tile.
template <int Kept, int TX, int TY, int W, int Unroll, int Splits, class In, class Out, class Reduction, class Fusion>
LATHE_DEVICE void reduce_strips(const In& x, const Out& y, typename Reduction::State* states, unsigned* counters,
                                const Reduction& reduction, const Fusion& fusion) {
  constexpr int R = In::kRank;
  const long length = extent_of<Kept, R - Kept>(x);
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, W>(x, c, index);
  typename Reduction::State own[W];
  reduce_strip<Kept, TX, TY, W, Unroll>(x, reduction, own, c, inside, part_of(length, block_y(), Splits));
  auto* const shared = reinterpret_cast<typename Reduction::State*>(dynamic_shared());
  if (!merge_columns<TX, TY, Splits>(reduction, own, states, counters, extent_of<0, Kept>(x), index, inside, shared))
    return;
  store_columns<Kept, TX>(y, reduction, fusion, own, length, c, inside);
}
