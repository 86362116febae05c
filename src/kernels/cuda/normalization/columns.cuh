// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows that stand side by side: the dimension with stride 1 is the last of those that count rows. A
// thread works on W neighbouring rows ("columns"), a block of TX * TY threads on TX * W of them.
#pragma once

#include "lib/accumulate.cuh"
#include "lib/results.cuh"
#include "normalization/affine.cuh"
#include "normalization/statistics.cuh"

// Positions first, first + step, ... of W columns, as many as there are below `end`.
template <int Kept, int W, int Unroll, class In, int R>
LATHE_DEVICE void load_strip(const In& x, float (&v)[Unroll][W], long (&c)[R], long first, long end, long step) {
  LATHE_UNROLL
  for (int i = 0; i < Unroll; ++i) {
    if (first + i * step >= end) continue;
    unflatten_dims<Kept, R - Kept>(x, first + i * step, c);
    load_values<Kept - 1>(x, c, v[i]);
  }
}

// Writes what was loaded, normalised.
template <int Kept, int W, int Unroll, class In, class Statistic, class Affine, class Fusion, int R, class... Out>
LATHE_DEVICE void store_strip(const In& x, const Statistic& statistic, const typename Statistic::Factors (&factors)[W],
                              const Affine& affine, const Fusion& fusion, float (&v)[Unroll][W], long (&c)[R],
                              long first, long end, long step, const Out&... results) {
  LATHE_UNROLL
  for (int i = 0; i < Unroll; ++i) {
    if (first + i * step >= end) continue;
    unflatten_dims<Kept, R - Kept>(x, first + i * step, c);
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) {
      float element[1] = {v[i][j]};
      statistic.apply(element, factors[j]);
      v[i][j] = element[0];
    }
    affine.template apply<Kept - 1>(v[i], c);
    store_results<Kept - 1>(fusion, v[i], c, W, results...);
  }
}

// Positions first, first + step, ... below `end` of W columns.
template <int Kept, int W, int Unroll, class In, class Statistic, class Affine, class Fusion, int R, class... Out>
LATHE_DEVICE void normalize_strip(const In& x, const Statistic& statistic,
                                  const typename Statistic::Factors (&factors)[W], const Affine& affine,
                                  const Fusion& fusion, long (&c)[R], long first, long end, long step,
                                  const Out&... results) {
  for (long position = first; position < end; position += Unroll * step) {
    float v[Unroll][W];
    load_strip<Kept>(x, v, c, position, end, step);
    store_strip<Kept>(x, statistic, factors, affine, fusion, v, c, position, end, step, results...);
  }
}

// In one launch, reading twice.
template <int Kept, int TX, int TY, int W, int Unroll, class In, class Statistic, class Affine, class Fusion,
          class... Out>
LATHE_DEVICE void normalize_columns(const In& x, const Statistic& statistic, const Affine& affine, const Fusion& fusion,
                                    const Out&... results) {
  constexpr int R = In::kRank;
  using State = typename Statistic::State;
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, W>(x, c, index);
  const long length = extent_of<Kept, R - Kept>(x), first = thread_x() / TX;
  State states[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) states[j] = statistic.start();
  dependency_wait();
  if (inside) accumulate_columns<Kept, W, Unroll>(statistic, states, x, c, first, length, TY);
  reduce_columns<TX, TY>(statistic, states, reinterpret_cast<State*>(dynamic_shared()));
  typename Statistic::Factors factors[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) factors[j] = statistic.finish(states[j], static_cast<float>(length));
  if (inside) normalize_strip<Kept, W, Unroll>(x, statistic, factors, affine, fusion, c, first, length, TY, results...);
}

// In three launches for few columns: summarize_strips on a grid (column tiles, Splits), states[split][column];
// merge_strips over the columns, states[column] behind those; normalize_strips on the grid of the first.
template <int Kept, int TX, int TY, int W, int Unroll, int Splits, class In, class Statistic>
LATHE_DEVICE void summarize_strips(const In& x, typename Statistic::State* states, const Statistic& statistic) {
  constexpr int R = In::kRank;
  using State = typename Statistic::State;
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, W>(x, c, index);
  const Part part = part_of(extent_of<Kept, R - Kept>(x), block_y(), Splits);
  State own[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) own[j] = statistic.start();
  dependency_wait();
  if (inside) accumulate_columns<Kept, W, Unroll>(statistic, own, x, c, part.begin + thread_x() / TX, part.end, TY);
  reduce_columns<TX, TY>(statistic, own, reinterpret_cast<State*>(dynamic_shared()));
  if (inside && thread_x() < TX) {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) states[block_y() * extent_of<0, Kept>(x) + index + j] = own[j];
  }
}

// Threads threads, one warp for each column.
template <int Threads, int Splits, class Statistic>
LATHE_DEVICE void merge_strips(typename Statistic::State* states, long columns, const Statistic& statistic) {
  const long column = static_cast<long>(block_x()) * (Threads / 32) + thread_x() / 32;
  dependency_wait();
  auto state = statistic.start();
  if (column < columns)
    for (int i = thread_x() % 32; i < Splits; i += 32) statistic.merge(state, states[i * columns + column]);
  reduce_lanes<32>(statistic, state);
  if (column < columns && thread_x() % 32 == 0) states[Splits * columns + column] = state;
}

template <int Kept, int TX, int TY, int W, int Unroll, int Splits, class In, class Statistic, class Affine,
          class Fusion, class... Out>
LATHE_DEVICE void normalize_strips(const In& x, const typename Statistic::State* states, const Statistic& statistic,
                                   const Affine& affine, const Fusion& fusion, const Out&... results) {
  constexpr int R = In::kRank;
  long c[R], index;
  const bool inside = locate_columns<Kept, TX, W>(x, c, index);
  const long length = extent_of<Kept, R - Kept>(x);
  const Part part = part_of(length, block_y(), Splits);
  dependency_wait();
  typename Statistic::Factors factors[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j)
    factors[j] = statistic.finish(states[Splits * extent_of<0, Kept>(x) + index + j], static_cast<float>(length));
  if (inside)
    normalize_strip<Kept, W, Unroll>(x, statistic, factors, affine, fusion, c, part.begin + thread_x() / TX, part.end,
                                     TY, results...);
}
