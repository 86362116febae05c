// SPDX-License-Identifier: Apache-2.0
// Reductions of rows to one element each: of rows along the dimension with stride 1, and of rows that stand side by
// side
// ("columns"). The result has the first Kept dimensions of the input, its program runs on floats only.
#pragma once

#include "lib/accumulate.cuh"
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

// Few long rows, in two launches: grid (rows, Splits) for the parts, the states of a row side by side in `states`;
// then a block for each row.
template <int Kept, int Threads, int W, int Unroll, int Splits, class In, class Reduction>
LATHE_DEVICE void reduce_split_rows(const In& x, typename Reduction::State* states, const Reduction& reduction) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  const Part part = part_of(chunks_of<Kept, W>(x), block_y(), Splits);
  dependency_wait();
  auto state = reduction.start();
  accumulate_row<Kept, W, Unroll>(reduction, state, x, c, part.begin + thread_x(), part.end, Threads);
  reduce_row<Threads>(reduction, state, reinterpret_cast<typename Reduction::State*>(dynamic_shared()));
  if (thread_x() == 0) states[static_cast<long>(block_x()) * Splits + block_y()] = state;
}

template <int Kept, int Threads, int Splits, class In, class Out, class Reduction, class Fusion>
LATHE_DEVICE void reduce_row_states(const In& x, const Out& y, const typename Reduction::State* states,
                                    const Reduction& reduction, const Fusion& fusion) {
  constexpr int R = In::kRank;
  long c[R];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  auto state = reduction.start();
  for (int i = thread_x(); i < Splits; i += Threads)
    reduction.merge(state, states[static_cast<long>(block_x()) * Splits + i]);
  reduce_row<Threads>(reduction, state, reinterpret_cast<typename Reduction::State*>(dynamic_shared()));
  if (thread_x() != 0) return;
  const typename Reduction::Result results[1] = {reduction.finish(state, extent_of<Kept, R - Kept>(x))};
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

// Columns in one launch.
template <int Kept, int TX, int TY, int W, int Unroll, class In, class Out, class Reduction, class Fusion>
LATHE_DEVICE void reduce_columns_whole(const In& x, const Out& y, const Reduction& reduction, const Fusion& fusion) {
  constexpr int R = In::kRank;
  const long length = extent_of<Kept, R - Kept>(x);
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, W>(x, c, index);
  typename Reduction::State states[W];
  reduce_strip<Kept, TX, TY, W, Unroll>(x, reduction, states, c, inside, Part{0, length});
  if (!inside || thread_x() >= TX) return;
  typename Reduction::Result results[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) results[j] = reduction.finish(states[j], length);
  store_results<Kept, W>(y, fusion, results, c);
}

// Few columns, in two launches: grid (column tiles, Splits) for states[split][column], then reduce_strip_states.
template <int Kept, int TX, int TY, int W, int Unroll, int Splits, class In, class Reduction>
LATHE_DEVICE void reduce_strips(const In& x, typename Reduction::State* states, const Reduction& reduction) {
  constexpr int R = In::kRank;
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, W>(x, c, index);
  typename Reduction::State own[W];
  reduce_strip<Kept, TX, TY, W, Unroll>(x, reduction, own, c, inside,
                                        part_of(extent_of<Kept, R - Kept>(x), block_y(), Splits));
  if (!inside || thread_x() >= TX) return;
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) states[block_y() * extent_of<0, Kept>(x) + index + j] = own[j];
}

// The states that reduce_strips left: one thread for each column and TY shares of the splits.
template <int Kept, int TX, int TY, int Splits, class In, class Out, class Reduction, class Fusion>
LATHE_DEVICE void reduce_strip_states(const In& x, const Out& y, const typename Reduction::State* states,
                                      const Reduction& reduction, const Fusion& fusion) {
  constexpr int R = In::kRank;
  using State = typename Reduction::State;
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, 1>(x, c, index);
  dependency_wait();
  State own[1] = {reduction.start()};
  if (inside)
    for (int i = thread_x() / TX; i < Splits; i += TY)
      reduction.merge(own[0], states[i * extent_of<0, Kept>(x) + index]);
  reduce_columns<TX, TY>(reduction, own, reinterpret_cast<State*>(dynamic_shared()));
  if (!inside || thread_x() >= TX) return;
  const typename Reduction::Result results[1] = {reduction.finish(own[0], extent_of<Kept, R - Kept>(x))};
  store_results<Kept, 1>(y, fusion, results, c);
}
