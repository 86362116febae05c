// SPDX-License-Identifier: Apache-2.0
// Rows that are normalised behind their products. With the scale in the weights, a normalised row times a column is
//   (row * column - mean * sum of the column) / deviation + bias * column,
// so that matrix units multiply rows as they lie. The statistics of a row come from a launch before, or from the groups
// of warps themselves, which read each panel of rows once more while matrix units multiply it.
#pragma once

#include "gemm/gemm.cuh"
#include "normalization/statistics.cuh"

namespace gemm {

struct RowFactors {
  float mean, inverse;  // of the deviation
};
LATHE_DEVICE RowFactors row_factors(const Moments::Factors& of) { return {of.mean, of.inverse}; }
LATHE_DEVICE RowFactors row_factors(const MeanSquare::Factors& of) { return {0.0f, of.factor}; }

// Of rows of kK elements, by a warp each.
template <int kK, int kWarps, class T, class Statistic>
LATHE_DEVICE void find_row_factors(const T* rows, long pitch, long count, const Statistic& statistic,
                                   RowFactors* factors) {
  constexpr int kWidth = 8, kStep = 32 * kWidth, kAtOnce = 4;
  const long row = static_cast<long>(block_x()) * kWarps + warp();
  dependency_wait();
  if (row >= count) return;
  const T* const from = rows + row * pitch + lane() * kWidth;
  auto state = statistic.start();
  LATHE_UNROLL
  for (int first = 0; first < kK; first += kAtOnce * kStep) {
    Vec<T, kWidth> vectors[kAtOnce];
    LATHE_UNROLL
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * kStep + lane() * kWidth < kK)
        vectors[i] = *reinterpret_cast<const Vec<T, kWidth>*>(from + first + i * kStep);
    LATHE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kStep + lane() * kWidth >= kK) continue;
      float v[1][kWidth];
      LATHE_UNROLL
      for (int j = 0; j < kWidth; ++j) v[0][j] = to_float(vectors[i].at[j]);
      statistic.add(state, v);
    }
  }
  reduce_lanes<32>(statistic, state);
  if (lane() == 0) factors[row] = row_factors(statistic.finish(state, static_cast<float>(kK)));
}

// Sums of half a row's elements by one thread, in chains that do not wait for each other: a panel has a vector for
// each. Elements of a mean are taken relative to one of the row's own, so that sums of squares keep their digits.
template <class Statistic>
struct ThreadSums;

template <>
struct ThreadSums<Moments> {
  float pivot, sums[4], squares[4];

  template <int W>
  LATHE_DEVICE_MEMBER void add(const float (&v)[4][W], bool is_first) {
    if (is_first) pivot = 0.25f * (v[0][0] + v[1][0] + v[2][0] + v[3][0]);
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) LATHE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float distance = v[i][j] - pivot;
      sums[i] += distance;
      squares[i] += distance * distance;
    }
  }
  LATHE_DEVICE_MEMBER Moments::State state(float count) const {
    const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]), mean = sum / count;
    const float all = (squares[0] + squares[1]) + (squares[2] + squares[3]) - sum * mean;
    return {count, pivot + mean, all > 0.0f ? all : all * 0.0f};  // not below 0, and NaN where an element is
  }
};

template <>
struct ThreadSums<MeanSquare> {
  float squares[4];

  template <int W>
  LATHE_DEVICE_MEMBER void add(const float (&v)[4][W], bool) {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) LATHE_UNROLL
    for (int i = 0; i < 4; ++i) squares[i] += v[i][j] * v[i][j];
  }
  LATHE_DEVICE_MEMBER MeanSquare::State state(float) const {
    return {(squares[0] + squares[1]) + (squares[2] + squares[3])};
  }
};

// What a group of warps knows of the rows whose sums it has (PipelineTile): two neighbouring threads have a row of each
// 64, and half of the elements of a panel each.
template <class Tile, class Statistic, int kK>
struct RowStatistics {
  using T = typename Tile::Element;
  Statistic statistic;
  RowFactors* factors;  // of the group's rows, in shared memory
  ThreadSums<Statistic> sums[Tile::kRowTiles];
  bool is_first;  // panel

  // `shared` has room for the rows of both groups.
  LATHE_DEVICE_MEMBER void start(char* shared, int group) {
    factors = reinterpret_cast<RowFactors*>(shared) + group * 64 * Tile::kRowTiles;
    clear();
  }
  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (auto& each : sums) each = {};
    is_first = true;
  }

  // A panel's rows from `first` on.
  LATHE_DEVICE_MEMBER void add(const char* panel, int first) {
    constexpr int kWidth = 16 / static_cast<int>(sizeof(T)), kChunks = 4;
    warp_barrier();  // loads are not placed before the products, which would begin later
    LATHE_UNROLL
    for (int tile = 0; tile < Tile::kRowTiles; ++tile) {
      const char* row = panel + (first / 64 + tile) * Tile::PanelA::kGroupBytes + own_row() * 128;
      float v[kChunks][kWidth];
      LATHE_UNROLL
      for (int i = 0; i < kChunks; ++i) {
        const int chunk = (lane() % 2 * kChunks + i) ^ (own_row() % 8);  // as the copy engine permutes them
        const auto vector = *reinterpret_cast<const Vec<T, kWidth>*>(row + chunk * 16);
        LATHE_UNROLL
        for (int j = 0; j < kWidth; ++j) v[i][j] = to_float(vector.at[j]);
      }
      sums[tile].add(v, is_first);
    }
    is_first = false;
  }

  // A warp's rows are those of its sums. The next ones begin.
  LATHE_DEVICE_MEMBER void finish() {
    warp_barrier();  // others of the warp may still read those before
    LATHE_UNROLL
    for (int tile = 0; tile < Tile::kRowTiles; ++tile) {
      auto state = sums[tile].state(static_cast<float>(kK / 2));
      reduce_lanes<2>(statistic, state);
      if (lane() % 2 == 0)
        factors[tile * 64 + own_row()] = row_factors(statistic.finish(state, static_cast<float>(kK)));
    }
    warp_barrier();
    clear();
  }

 private:
  LATHE_DEVICE_MEMBER static int own_row() { return thread_x() % 128 / 2; }
};

// Where factors are: of row `first` at the beginning.
struct FactorsAt {
  const RowFactors* data;
  long first;
  LATHE_DEVICE_MEMBER const RowFactors& of(long row) const { return data[row - first]; }
};

// Normalises what goes to another sink. Of each column: its weights' sum, where means are subtracted, and what the bias
// adds. Both have room for whole vectors. Weights were multiplied by a power of two, `unscale` takes that off.
template <bool kMean, bool kBias, class Sink>
struct NormalizingSink {
  Sink sink;
  FactorsAt factors;
  const float *sums, *shifts;
  float unscale;

  static constexpr bool kSeveral = Sink::kSeveral;
  static constexpr int kAtOnce = Sink::kAtOnce;

  template <int W>
  struct Terms {
    float sums[kMean ? W : 1], shifts[kBias ? W : 1];
  };
  template <int W>
  struct Columns {
    typename Sink::template Columns<W> own;
    Terms<W> terms;
  };

  template <int W>
  LATHE_DEVICE_MEMBER Columns<W> columns(long column, int count) const {
    return {sink.template columns<W>(column, count), terms<W>(column)};
  }
  template <int W, int N>
  LATHE_DEVICE_MEMBER void put_several(float (&v)[N][W], const long (&row)[N], const long (&column)[N],
                                       const int (&count)[N], const bool (&wanted)[N]) const {
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) normalize(v[k], row[k], terms<W>(column[k]));
    sink.put_several(v, row, column, count, wanted);
  }
  LATHE_DEVICE_MEMBER auto* at(long row, long column) const { return sink.at(row, column); }

  template <int W, int N, class Held>
  LATHE_DEVICE_MEMBER void put_rows(float (&v)[N][W], const long (&row)[N], long column, int count,
                                    const bool (&wanted)[N], const Held& held) const {
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) normalize(v[k], row[k], held.terms);
    sink.put_rows(v, row, column, count, wanted, held.own);
  }
  template <int W>
  LATHE_DEVICE_MEMBER void put(float (&v)[W], long row, long column, int count) const {
    normalize(v, row, terms<W>(column));
    sink.put(v, row, column, count);
  }

 private:
  template <int W>
  LATHE_DEVICE_MEMBER Terms<W> terms(long column) const {
    Terms<W> found;
    if constexpr (kMean) read(found.sums, sums + column);
    if constexpr (kBias) read(found.shifts, shifts + column);
    return found;
  }
  template <int W>
  LATHE_DEVICE_MEMBER static void read(float (&to)[W], const float* from) {
    constexpr int kPart = W < 4 ? W : 4;
    LATHE_UNROLL
    for (int i = 0; i < W; i += kPart) {
      const auto part = *reinterpret_cast<const Vec<float, kPart>*>(from + i);
      LATHE_UNROLL
      for (int j = 0; j < kPart; ++j) to[i + j] = part.at[j];
    }
  }
  template <int W>
  LATHE_DEVICE_MEMBER void normalize(float (&v)[W], long row, const Terms<W>& terms) const {
    const RowFactors own = factors.of(row);
    const float factor = own.inverse * unscale;
    LATHE_UNROLL
    for (int i = 0; i < W; ++i) {
      if constexpr (kMean) v[i] -= own.mean * terms.sums[i];
      v[i] = kBias ? v[i] * factor + terms.shifts[i] : v[i] * factor;
    }
  }
};

template <bool kMean, bool kBias, class Sink>
LATHE_DEVICE NormalizingSink<kMean, kBias, Sink> normalizing_sink(const Sink& sink, const FactorsAt& factors,
                                                                  const float* sums, const float* shifts,
                                                                  float unscale) {
  return {sink, factors, sums, shifts, unscale};
}

}  // namespace gemm
