// SPDX-License-Identifier: Apache-2.0
// A statistic (a monoid of lib/reduce.cuh with Value and add()) of parts of rows. Several loads are in flight at once:
// Unroll is their number. add() of a statistic with kPositions is told where in the row each v[i][0] stands; its
// neighbours are v[i][j].
#pragma once

#include "lib/computed.cuh"
#include "lib/reduce.cuh"
#include "lib/space.cuh"

// W elements at c along dimension D, as float, or as double or a 64-bit integer where those are computed with.
template <int D, int W, class Tensor, int R>
LATHE_DEVICE void load_values(const Tensor& tensor, const long (&c)[R], float (&v)[W]) {
  load<D, W>(tensor, c, v, W);
}
template <int D, int W, class Tensor, int R, class Value>
LATHE_DEVICE void load_values(const Tensor& tensor, const long (&c)[R], Value (&v)[W]) {
  const auto* from = tensor.data + offset_of(tensor, c);
  LATHE_UNROLL
  for (int i = 0; i < W; ++i) {
    if constexpr (is_same<Value, double>)
      v[i] = to_double(from[i * tensor.stride(D)]);
    else
      v[i] = static_cast<Value>(from[i * tensor.stride(D)]);
  }
}

template <class Statistic, int N, int W>
LATHE_DEVICE void add_values(const Statistic& statistic, typename Statistic::State& state,
                             const typename Statistic::Value (&v)[N][W], long first, long step) {
  if constexpr (Statistic::kPositions)
    statistic.add(state, v, first, step);
  else
    statistic.add(state, v);
}

// Chunks first, first + step, ... below `end` of the row at c.
template <int Kept, int W, int Unroll, class Statistic, class Tensor, int R>
LATHE_DEVICE void accumulate_row(const Statistic& statistic, typename Statistic::State& state, const Tensor& x,
                                 long (&c)[R], long first, long end, long step) {
  using Value = typename Statistic::Value;
  long chunk = first;
  for (; chunk + (Unroll - 1) * step < end; chunk += Unroll * step) {
    Value v[Unroll][W];
    LATHE_UNROLL
    for (int i = 0; i < Unroll; ++i) {
      unflatten_chunk<Kept, W>(x, chunk + i * step, c);
      load_values<R - 1>(x, c, v[i]);
    }
    add_values(statistic, state, v, chunk * W, step * W);
  }
  for (; chunk < end; chunk += step) {
    Value v[1][W];
    unflatten_chunk<Kept, W>(x, chunk, c);
    load_values<R - 1>(x, c, v[0]);
    add_values(statistic, state, v, chunk * W, step * W);
  }
}

template <int N, int W, class Statistic>
LATHE_DEVICE void add_columns(const Statistic& statistic, typename Statistic::State (&states)[W],
                              const typename Statistic::Value (&v)[N][W], long first, long step) {
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) {
    typename Statistic::Value column[N][1];
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) column[i][0] = v[i][j];
    add_values(statistic, states[j], column, first, step);
  }
}

// Positions first, first + step, ... below `end` of W neighbouring rows: those at c, c + 1, ... along dimension Kept
// - 1.
template <int Kept, int W, int Unroll, class Statistic, class Tensor, int R>
LATHE_DEVICE void accumulate_columns(const Statistic& statistic, typename Statistic::State (&states)[W],
                                     const Tensor& x, long (&c)[R], long first, long end, long step) {
  using Value = typename Statistic::Value;
  long position = first;
  for (; position + (Unroll - 1) * step < end; position += Unroll * step) {
    Value v[Unroll][W];
    LATHE_UNROLL
    for (int i = 0; i < Unroll; ++i) {
      unflatten_dims<Kept, R - Kept>(x, position + i * step, c);
      load_values<Kept - 1>(x, c, v[i]);
    }
    add_columns(statistic, states, v, position, step);
  }
  for (; position < end; position += step) {
    Value v[1][W];
    unflatten_dims<Kept, R - Kept>(x, position, c);
    load_values<Kept - 1>(x, c, v[0]);
    add_columns(statistic, states, v, position, step);
  }
}

// Which columns a thread has: their coordinates, and whether they exist. `index` counts columns over all of x.
template <int Kept, int TX, int W, class In, int R>
LATHE_DEVICE bool locate_columns(const In& x, long (&c)[R], long& index) {
  const long columns = x.dim(Kept - 1), tiles = (columns + TX * W - 1) / (TX * W);
  const long outer = block_x() / tiles;
  unflatten_dims<0, Kept - 1>(x, outer, c);
  const long column = (block_x() % tiles * TX + thread_x() % TX) * W;
  c[Kept - 1] = column < columns ? column : 0;
  index = outer * columns + c[Kept - 1];
  return column < columns;
}

// A block as a rectangle: thread (tx, ty) works on column group tx and every TY-th position. Merges the states of each
// column over ty; every thread gets the result. `shared` holds TX * TY * W states.
template <int TX, int TY, int W, class Monoid>
LATHE_DEVICE void reduce_columns(const Monoid& monoid, typename Monoid::State (&states)[W],
                                 typename Monoid::State* shared) {
  if constexpr (TY > 1) {
    const int tx = thread_x() % TX, ty = thread_x() / TX;
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) shared[(ty * W + j) * TX + tx] = states[j];
    for (int half = TY / 2; half > 0; half /= 2) {
      barrier();
      if (ty < half) {
        LATHE_UNROLL
        for (int j = 0; j < W; ++j) {
          monoid.merge(states[j], shared[((ty + half) * W + j) * TX + tx]);
          shared[(ty * W + j) * TX + tx] = states[j];
        }
      }
    }
    barrier();
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) states[j] = shared[j * TX + tx];
  }
}
