// SPDX-License-Identifier: Apache-2.0
// From accumulators to the output: staged through shared memory, so that the fused program runs on vectors of
// neighbouring elements and exists once in the code.
#pragma once

#include "gemm/dense_loader.cuh"
#include "gemm/main_loop.cuh"
#include "gemm/staging.cuh"
#include "lib/tensor.cuh"

namespace gemm {

// The columns of the product are the dimensions D - kColumnDims + 1 to D of the output, row-major; its rows the others.
template <int D, int kColumnDims, class Out, int N>
LATHE_DEVICE void column_coordinates(const Out& out, long column, long (&c)[N]) {
  LATHE_UNROLL
  for (int i = D; i > D - kColumnDims + 1; --i) {
    const auto dim = static_cast<unsigned>(out.dim(i)), rest = static_cast<unsigned>(column);
    c[i] = rest % dim;
    column = rest / dim;
  }
  c[D - kColumnDims + 1] = column;
}

template <int D, int kColumnDims, class Out, int N>
LATHE_DEVICE void row_coordinates(const Out& out, long row, long (&c)[N]) {
  constexpr int kFirst = D - kColumnDims + 1;
  unsigned rest = static_cast<unsigned>(row);
  LATHE_UNROLL
  for (int i = Out::kRank - 1; i >= 0; --i) {
    if (i >= kFirst && i <= D) continue;
    if (i == (kFirst == 0 ? D + 1 : 0)) {
      c[i] = rest;
    } else {
      const auto dim = static_cast<unsigned>(out.dim(i));
      c[i] = rest % dim;
      rest /= dim;
    }
  }
}

// All rows of the output, from row `first` on.
template <int D, int kColumnDims = 1>
struct AllRows {
  static constexpr bool kAll = true;  // every row has a place
  long first;

  template <class Out, int N>
  LATHE_DEVICE_MEMBER bool coordinates(const Out& out, long row, long (&c)[N]) const {
    row_coordinates<D, kColumnDims>(out, first + row, c);
    return true;
  }
};

// Writes the result of the fused program. D is the output's last dimension of the product's columns, Element the type
// of the op's own result. Rows says where a row lies in the output, and whether it does.
template <int D, int kColumnDims, class Element, class Accumulator, class Out, class Fusion, class Rows>
struct FusedSink {
  Out out;
  Fusion fusion;
  Rows rows;
  long first_column;

  // Whether sums are stored as the integers that they are.
  static constexpr bool kStoresSums = Fusion::kIdentity && is_same<Element, typename Out::Type>;
  static constexpr bool kIntegers = is_same<Accumulator, int> && is_same<Element, int> && !kStoresSums;
  // Vectors that are finished together: their operands are on the way at the same time.
  static constexpr bool kSeveral = Rows::kAll && (is_same<Accumulator, float> || kIntegers);
  static constexpr int kAtOnce = kSeveral ? Fusion::kAtOnce : 1;

  // What the program reads of W columns in every row.
  template <int W>
  using Columns = typename Fusion::template Columns<D, W>;
  template <int W>
  LATHE_DEVICE_MEMBER Columns<W> columns(long column, int count) const {
    long c[Out::kRank] = {};
    column_coordinates<D, kColumnDims>(out, first_column + column, c);
    return fusion.template columns<D, W>(c, count);
  }

  // Those that are not `wanted` have a place nonetheless.
  template <int W, int N>
  LATHE_DEVICE_MEMBER void put_several(float (&v)[N][W], const long (&row)[N], const long (&column)[N],
                                       const int (&count)[N], const bool (&wanted)[N]) const {
    Columns<W> held[N];
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) held[k] = columns<W>(column[k], count[k]);
    finish_several(v, row, column, count, wanted, [&](int k) -> const Columns<W>& { return held[k]; });
  }
  // Of the same columns, in several rows.
  template <int W, int N>
  LATHE_DEVICE_MEMBER void put_rows(float (&v)[N][W], const long (&row)[N], long column, int count,
                                    const bool (&wanted)[N], const Columns<W>& held) const {
    long at[N];
    int counts[N];
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) at[k] = column, counts[k] = count;
    finish_several(v, row, at, counts, wanted, [&](int) -> const Columns<W>& { return held; });
  }

  // Where an element of the result belongs: its coordinates, and its address.
  LATHE_DEVICE_MEMBER void find(long row, long column, long (&c)[Out::kRank]) const {
    rows.coordinates(out, row, c);
    column_coordinates<D, kColumnDims>(out, first_column + column, c);
  }
  LATHE_DEVICE_MEMBER typename Out::Type* at(long row, long column) const {
    long c[Out::kRank];
    find(row, column, c);
    return out.data + offset_of(out, c);
  }

  template <int W>
  LATHE_DEVICE_MEMBER void put(float (&v)[W], long row, long column, int count) const {
    long c[Out::kRank];
    if (!rows.coordinates(out, row, c)) return;
    column_coordinates<D, kColumnDims>(out, first_column + column, c);
    fusion.template apply<D, W>(v, c, count);
    store_result<Fusion, D>(out, c, v, count);
  }

  // Sums that floats cannot hold: f64, and integers, which wrap to their type.
  template <int W, class Sum>
  LATHE_DEVICE_MEMBER void put(Sum (&v)[W], long row, long column, int count) const {
    if constexpr (kStoresSums) {
      long c[Out::kRank];
      if (!rows.coordinates(out, row, c)) return;
      LATHE_UNROLL
      for (int i = 0; i < W; ++i) {
        column_coordinates<D, kColumnDims>(out, first_column + column + i, c);
        if (i < count) out.data[offset_of(out, c)] = static_cast<Element>(v[i]);
      }
    } else {
      float f[W];
      LATHE_UNROLL
      for (int i = 0; i < W; ++i) f[i] = static_cast<float>(static_cast<Element>(v[i]));
      put(f, row, column, count);
    }
  }

 private:
  template <int W, int N, class Held>
  LATHE_DEVICE_MEMBER void finish_several(float (&v)[N][W], const long (&row)[N], const long (&column)[N],
                                          const int (&count)[N], const bool (&wanted)[N], const Held& held) const {
    long c[N][Out::kRank];
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) find(row[k], column[k], c[k]);
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) fusion.template apply<D, W>(v[k], c[k], count[k], held(k));
    LATHE_UNROLL
    for (int k = 0; k < N; ++k)
      if (wanted[k]) store_result<Fusion, D>(out, c[k], v[k], count[k]);
  }
};

template <int D, int kColumnDims, class Element, class Accumulator, class Out, class Fusion, class Rows>
LATHE_DEVICE FusedSink<D, kColumnDims, Element, Accumulator, Out, Fusion, Rows> fused_sink(const Out& out,
                                                                                           const Fusion& fusion,
                                                                                           const Rows& rows,
                                                                                           long first_column) {
  return {out, fusion, rows, first_column};
}

// As FusedSink, of a program that makes one column of the output of two of the product.
template <int D, class Out, class Fusion, class Rows>
struct PairSink {
  static constexpr bool kSeveral = false;
  static constexpr int kAtOnce = 1;
  Out out;
  Fusion fusion;
  Rows rows;
  long first_column;

  template <int W>
  LATHE_DEVICE_MEMBER void put(const float (&v)[W], long row, long column, int count) const {
    static_assert(W % 2 == 0, "whole pairs");
    long c[Out::kRank];
    if (!rows.coordinates(out, row, c)) return;
    c[D] = (first_column + column) / 2;
    float first[W / 2], second[W / 2];
    LATHE_UNROLL
    for (int i = 0; i < W / 2; ++i) first[i] = v[2 * i], second[i] = v[2 * i + 1];
    fusion.template apply<D, W / 2>(first, second, c, count / 2);
    store_result<Fusion, D>(out, c, first, count / 2);
  }
};

template <int D, class Out, class Fusion, class Rows>
LATHE_DEVICE PairSink<D, Out, Fusion, Rows> pair_sink(const Out& out, const Fusion& fusion, const Rows& rows,
                                                      long first_column) {
  return {out, fusion, rows, first_column};
}

// Keeps a split's sums for the launch that adds them up. Rows are whole vectors: `pitch` is a multiple of them.
template <class Accumulator>
struct PartialSink {
  static constexpr bool kSeveral = false;
  static constexpr int kAtOnce = 1;
  Accumulator* sums;
  long pitch;

  template <int W>
  LATHE_DEVICE_MEMBER void put(const Accumulator (&v)[W], long row, long column, int) const {
    constexpr int kPart = W * sizeof(Accumulator) > 16 ? 16 / static_cast<int>(sizeof(Accumulator)) : W;
    LATHE_UNROLL
    for (int i = 0; i < W; i += kPart) {
      Vec<Accumulator, kPart> part;
      LATHE_UNROLL
      for (int j = 0; j < kPart; ++j) part.at[j] = v[i + j];
      store_vector(sums + row * pitch + column + i, part);
    }
  }
};

// How a warp stages its tile, kSlabs pieces after each other when the whole does not fit.
template <class Tile, int kSlabs>
struct Staging {
  using Accumulator = typename Tile::Accumulator;
  static constexpr int kRows = Tile::kWarpM / kSlabs;
  static constexpr int kPitch = Tile::kWarpN + 8;  // eight words: pairs of accumulators hit each bank once
  static constexpr int kWarpBytes = kRows * kPitch * static_cast<int>(sizeof(Accumulator));
  static constexpr int kSliceBytes = kWarpBytes * Tile::kWarpsM * Tile::kWarpsN;
};

// Neighbours of a row that lie where `place` says, 16 bytes at once.
template <class Accumulator, int W, class Place>
LATHE_DEVICE void read_row(const Accumulator* row, Accumulator (&v)[W], const Place& place) {
  constexpr int kPart = W * sizeof(Accumulator) > 16 ? 16 / static_cast<int>(sizeof(Accumulator)) : W;
  LATHE_UNROLL
  for (int i = 0; i < W; i += kPart) {
    const auto part = *reinterpret_cast<const Vec<Accumulator, kPart>*>(row + place(i));
    LATHE_UNROLL
    for (int j = 0; j < kPart; ++j) v[i + j] = part.at[j];
  }
}
template <class Accumulator, int W>
LATHE_DEVICE void read_sums(const Accumulator* from, Accumulator (&v)[W]) {
  read_row(from, v, [](int i) { return i; });
}
template <class Accumulator, int W>
LATHE_DEVICE void read_staged(const Accumulator* row, int column, Accumulator (&v)[W]) {
  read_row(row, v, [&](int i) { return staged_column(column + i); });
}

// A staged piece of a tile, several vectors at once. What lies outside of the product takes part as its last row or
// column, so that nothing branches before the stores.
template <int W, bool kDownColumns, bool kWhole, class Accumulator, class Sink>
LATHE_DEVICE void store_several(const Accumulator* stage, int pitch, int height, int vectors, const Sink& sink,
                                long row, long rows, long column, long columns) {
  constexpr int kAtOnce = Sink::kAtOnce;
  LATHE_NO_UNROLL
  for (int first = lane(); first < height * vectors; first += 32 * kAtOnce) {
    float values[kAtOnce][W];
    long m[kAtOnce], n[kAtOnce];
    int count[kAtOnce];
    bool wanted[kAtOnce];
    LATHE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = first + 32 * k < height * vectors ? first + 32 * k : first;
      const int r = kDownColumns ? i % height : i / vectors, v = kDownColumns ? i / height : i % vectors;
      m[k] = row + r, n[k] = column + v * W;
      wanted[k] = i == first + 32 * k && m[k] < rows && n[k] < columns;
      Accumulator sums[W];
      read_staged(stage + r * pitch, v * W, sums);
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) values[k][j] = static_cast<float>(sums[j]);
      if (m[k] >= rows) m[k] = rows - 1;
      if (n[k] >= columns) n[k] = (columns - 1) / W * W;
      count[k] = kWhole ? W : min_of(columns - n[k], W);
    }
    sink.put_several(values, m, n, count, wanted);
  }
}

// The same where a thread has the same columns in all of its rows: what the program reads of them is read once.
template <int W, int kPitch, int kVectors, bool kWhole, class Accumulator, class Sink>
LATHE_DEVICE void store_columns(const Accumulator* stage, int height, const Sink& sink, long row, long rows,
                                long column, long columns) {
  constexpr int kAtOnce = W > 8 ? 2 : Sink::kAtOnce, kStep = 32 / kVectors;
  const int v = lane() % kVectors * W;
  const bool inside = column + v < columns;
  column = inside ? column + v : (columns - 1) / W * W;
  const int count = kWhole ? W : min_of(columns - column, W);
  const auto held = sink.template columns<W>(column, count);
  LATHE_NO_UNROLL
  for (int first = lane() / kVectors; first < height; first += kStep * kAtOnce) {
    float values[kAtOnce][W];
    long m[kAtOnce];
    bool wanted[kAtOnce];
    LATHE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int r = first + k * kStep < height ? first + k * kStep : first;
      m[k] = row + r;
      wanted[k] = inside && r == first + k * kStep && m[k] < rows;
      if (m[k] >= rows) m[k] = rows - 1;
      Accumulator sums[W];
      read_staged(stage + r * kPitch, v, sums);
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) values[k][j] = static_cast<float>(sums[j]);
    }
    sink.put_rows(values, m, column, count, wanted, held);
  }
}

// Gives staged rows of a warp's tile to the sink, W columns at once. kDownColumns: neighbouring threads take
// neighbouring rows (for outputs that are contiguous along them); W is 1 then. kWhole: the number of columns is a
// multiple of W.
template <int W, int kPitch, int kVectors, bool kDownColumns, bool kWhole, class Accumulator, class Sink>
LATHE_DEVICE void store_staged(const Accumulator* stage, int height, const Sink& sink, long row, long rows, long column,
                               long columns) {
  static_assert(!kDownColumns || W == 1, "single elements down a column");
  if constexpr (Sink::kAtOnce > 1 && 32 % kVectors == 0 && !kDownColumns) {
    store_columns<W, kPitch, kVectors, kWhole>(stage, height, sink, row, rows, column, columns);
  } else if constexpr (Sink::kAtOnce > 1) {
    store_several<W, kDownColumns, kWhole>(stage, kPitch, height, kVectors, sink, row, rows, column, columns);
  } else {
    LATHE_NO_UNROLL
    for (int i = lane(); i < height * kVectors; i += 32) {
      const int r = kDownColumns ? i % height : i / kVectors;
      const int v = kDownColumns ? i / height : i % kVectors;
      const long m = row + r, n = column + v * W;
      if (m >= rows || n >= columns) continue;
      Accumulator values[W];
      read_staged(stage + r * kPitch, v * W, values);
      sink.put(values, m, n, kWhole ? W : min_of(columns - n, W));
    }
  }
}

// Gives a tile's sums to the sink.
template <int W, int kSlabs, bool kDownColumns, bool kWhole, class Tile, class Sink>
LATHE_DEVICE void store_tile(const Tile& tile, const Sink& sink, long row, long rows, long column, long columns,
                             char* shared) {
  using Stage = Staging<Tile, kSlabs>;
  auto* stage = reinterpret_cast<typename Tile::Accumulator*>(shared + warp() * Stage::kWarpBytes);
  row += Tile::warp_row();
  column += Tile::warp_column();
  LATHE_UNROLL
  for (int slab = 0; slab < kSlabs; ++slab) {
    if (slab > 0) warp_barrier();
    tile.stage(stage, Stage::kPitch, slab * Stage::kRows, Stage::kRows);
    warp_barrier();
    store_staged<W, Stage::kPitch, Tile::kWarpN / W, kDownColumns, kWhole>(
        stage, Stage::kRows, sink, row + slab * Stage::kRows, rows, column, columns);
  }
}

// Gives the sum of the tiles of a cluster's blocks and, in each, of the warps that share a tile to the sink, added up
// in their order. Each warp sees to a share of the rows, which it reads from the shared memory of all.
template <int W, int kBlocks, bool kDownColumns, bool kWhole, class Tile, class Sink>
LATHE_DEVICE void store_sums(const Tile& tile, const Sink& sink, long row, long rows, long column, long columns,
                             char* shared) {
  using Stage = Staging<Tile, 1>;
  using Accumulator = typename Tile::Accumulator;
  constexpr int kSlices = Tile::kWarpsK, kPartials = kBlocks * kSlices;
  constexpr int kWidth = 16 / static_cast<int>(sizeof(Accumulator)), kVectors = Tile::kWarpN / kWidth;
  using Vector = Vec<Accumulator, kWidth>;
  const int share = (kBlocks > 1 ? cluster_rank() : 0) * kSlices + Tile::slice();
  const int first = Stage::kRows * share / kPartials, height = Stage::kRows * (share + 1) / kPartials - first;
  char* stage = shared + warp() * Stage::kWarpBytes;
  tile.stage(reinterpret_cast<Accumulator*>(stage), Stage::kPitch, 0, Stage::kRows);
  if constexpr (kBlocks > 1) cluster_arrive();
  stage += first * Stage::kPitch * static_cast<int>(sizeof(Accumulator));
  const char* partials[kPartials];
  LATHE_UNROLL
  for (int i = 0; i < kPartials; ++i) {
    partials[i] = stage + (i % kSlices - Tile::slice()) * Stage::kSliceBytes;
    if constexpr (kBlocks > 1) partials[i] = cluster_peer(partials[i], i / kSlices);
  }
  if constexpr (kBlocks > 1) {
    cluster_wait();
  } else {
    barrier();
  }
  LATHE_NO_UNROLL
  for (int i = lane(); i < height * kVectors; i += 32) {
    const int at = (i / kVectors * Stage::kPitch + i % kVectors * kWidth) * static_cast<int>(sizeof(Accumulator));
    Vector sums[kPartials];
    LATHE_UNROLL
    for (int k = 0; k < kPartials; ++k) sums[k] = *reinterpret_cast<const Vector*>(partials[k] + at);
    LATHE_UNROLL
    for (int k = 1; k < kPartials; ++k) LATHE_UNROLL
    for (int j = 0; j < kWidth; ++j) sums[0].at[j] += sums[k].at[j];
    *reinterpret_cast<Vector*>(stage + at) = sums[0];
  }
  if constexpr (kBlocks > 1) cluster_arrive();
  warp_barrier();
  store_staged<W, Stage::kPitch, Tile::kWarpN / W, kDownColumns, kWhole>(reinterpret_cast<const Accumulator*>(stage),
                                                                         height, sink, row + Tile::warp_row() + first,
                                                                         rows, column + Tile::warp_column(), columns);
  if constexpr (kBlocks > 1) cluster_wait();  // until the others have read what is staged here
}

}  // namespace gemm
