// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows along the dimension with stride 1 (or any, with W = 1).
#pragma once

#include "lib/accumulate.cuh"
#include "lib/results.cuh"
#include "normalization/affine.cuh"
#include "normalization/statistics.cuh"

// Rows that stay in registers, so that memory is read once: Lanes threads hold Chunks chunks each. Blocks of
// Lanes * Rows threads; Rows is 1 when Lanes exceeds a warp.
template <int Kept, int Lanes, int Rows, int Chunks, int W, class In, class Statistic, class Affine, class Fusion,
          class... Out>
LATHE_DEVICE void normalize_resident(const In& x, const Statistic& statistic, const Affine& affine,
                                     const Fusion& fusion, const Out&... results) {
  constexpr int R = In::kRank;
  const long rows = extent_of<0, Kept>(x), chunks = chunks_of<Kept, W>(x);
  const long row = static_cast<long>(block_x()) * Rows + thread_x() / Lanes;
  const int own = thread_x() % Lanes;
  long c[R];
  unflatten_dims<0, Kept>(x, row < rows ? row : rows - 1, c);
  // Scale and bias are mostly constants, which nothing has read since the run before: they come while others still run.
  for (long chunk = own; block_x() == 0 && chunk < chunks; chunk += Lanes) {
    unflatten_chunk<Kept, W>(x, chunk, c);
    affine.prefetch(c);
  }
  dependency_wait();
  float v[Chunks][W];
  bool inside[Chunks];
  LATHE_UNROLL
  for (int i = 0; i < Chunks; ++i) {
    inside[i] = own + i * Lanes < chunks;
    if (!inside[i]) continue;
    unflatten_chunk<Kept, W>(x, own + i * Lanes, c);
    load_values<R - 1>(x, c, v[i]);
  }
  typename Statistic::State mine;
  statistic.absorb(mine, v, inside);
  auto all = mine;
  reduce_row<Lanes>(statistic, all, reinterpret_cast<typename Statistic::State*>(dynamic_shared()));
  if (row >= rows) return;
  const auto factors = statistic.finish_absorbed(all, mine, static_cast<float>(chunks * W));
  LATHE_UNROLL
  for (int i = 0; i < Chunks; ++i) {
    if (!inside[i]) continue;
    unflatten_chunk<Kept, W>(x, own + i * Lanes, c);
    statistic.apply_absorbed(v[i], factors);
    affine.template apply<R - 1>(v[i], c);
    store_results<R - 1>(fusion, v[i], c, W, results...);
  }
}

// Reads chunks first, first + step, ... below `end` of the row at c and writes them normalised.
template <int Kept, int W, int Unroll, class In, class Statistic, class Affine, class Fusion, int R, class... Out>
LATHE_DEVICE void normalize_part(const In& x, const Statistic& statistic, const typename Statistic::Factors& factors,
                                 const Affine& affine, const Fusion& fusion, long (&c)[R], long first, long end,
                                 long step, const Out&... results) {
  for (long chunk = first; chunk < end; chunk += Unroll * step) {
    float v[Unroll][W];
    LATHE_UNROLL
    for (int i = 0; i < Unroll; ++i) {
      if (chunk + i * step >= end) continue;
      unflatten_chunk<Kept, W>(x, chunk + i * step, c);
      load_values<R - 1>(x, c, v[i]);
    }
    LATHE_UNROLL
    for (int i = 0; i < Unroll; ++i) {
      if (chunk + i * step >= end) continue;
      unflatten_chunk<Kept, W>(x, chunk + i * step, c);
      statistic.apply(v[i], factors);
      affine.template apply<R - 1>(v[i], c);
      store_results<R - 1>(fusion, v[i], c, W, results...);
    }
  }
}

// Rows of any length, read twice: Lanes threads for each, blocks of Lanes * Rows threads.
template <int Kept, int Lanes, int Rows, int W, int Unroll, class In, class Statistic, class Affine, class Fusion,
          class... Out>
LATHE_DEVICE void normalize_twice(const In& x, const Statistic& statistic, const Affine& affine, const Fusion& fusion,
                                  const Out&... results) {
  const long rows = extent_of<0, Kept>(x), chunks = chunks_of<Kept, W>(x);
  const long row = static_cast<long>(block_x()) * Rows + thread_x() / Lanes;
  const int own = thread_x() % Lanes;
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, row < rows ? row : rows - 1, c);
  dependency_wait();
  auto state = statistic.start();
  accumulate_row<Kept, W, Unroll>(statistic, state, x, c, own, chunks, Lanes);
  reduce_row<Lanes>(statistic, state, reinterpret_cast<typename Statistic::State*>(dynamic_shared()));
  const auto factors = statistic.finish(state, static_cast<float>(chunks * W));
  if (row < rows)
    normalize_part<Kept, W, Unroll>(x, statistic, factors, affine, fusion, c, own, chunks, Lanes, results...);
}

// Few long rows, in two launches: grid (rows, Splits), the states of a row side by side in `states`.
template <int Kept, int Threads, int W, int Unroll, int Splits, class In, class Statistic>
LATHE_DEVICE void summarize_parts(const In& x, typename Statistic::State* states, const Statistic& statistic) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  const Part part = part_of(chunks_of<Kept, W>(x), block_y(), Splits);
  dependency_wait();
  auto state = statistic.start();
  accumulate_row<Kept, W, Unroll>(statistic, state, x, c, part.begin + thread_x(), part.end, Threads);
  reduce_row<Threads>(statistic, state, reinterpret_cast<typename Statistic::State*>(dynamic_shared()));
  if (thread_x() == 0) states[static_cast<long>(block_x()) * Splits + block_y()] = state;
}

template <int Kept, int Threads, int W, int Unroll, int Splits, class In, class Statistic, class Affine, class Fusion,
          class... Out>
LATHE_DEVICE void normalize_parts(const In& x, const typename Statistic::State* states, const Statistic& statistic,
                                  const Affine& affine, const Fusion& fusion, const Out&... results) {
  const long chunks = chunks_of<Kept, W>(x);
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  const Part part = part_of(chunks, block_y(), Splits);
  dependency_wait();
  auto state = statistic.start();
  for (int i = thread_x(); i < Splits; i += Threads)
    statistic.merge(state, states[static_cast<long>(block_x()) * Splits + i]);
  reduce_row<Threads>(statistic, state, reinterpret_cast<typename Statistic::State*>(dynamic_shared()));
  const auto factors = statistic.finish(state, static_cast<float>(chunks * W));
  normalize_part<Kept, W, Unroll>(x, statistic, factors, affine, fusion, c, part.begin + thread_x(), part.end, Threads,
                                  results...);
}
