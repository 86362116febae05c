// SPDX-License-Identifier: Apache-2.0
// What a launch of attention does of the steps before it: queries are computed as they are read, and new rows of keys
// and values are computed and written into the caches that it reads. Each block computes those that it needs, whatever
// it has read in their places, so that none waits for the one that writes them.
#pragma once

#include "lib/computed.cuh"

// A tensor [batch, heads, rows, size] that another one holds, of whose axes so many make up each dimension, the
// outermost first. Run neighbours along the last one are neighbours there.
template <class Tensor_, int Batch, int Heads, int Rows, int Size, int Run>
struct Collapsed {
  using Tensor = Tensor_;
  using Type = typename Tensor::Type;
  static constexpr int kRank = 4, kAxes = Tensor::kRank, kRun = Run;
  static_assert(Batch + Heads + Rows + Size == kAxes, "each axis is part of a dimension");
  Tensor tensor;

  // Of the axes of dimension i, the one behind the last.
  LATHE_DEVICE_MEMBER static constexpr int end(int i) {
    return i < 0 ? 0 : i == 0 ? Batch : i == 1 ? Batch + Heads : i == 2 ? Batch + Heads + Rows : kAxes;
  }
  LATHE_DEVICE_MEMBER long dim(int i) const {
    long extent = 1;
    for (int axis = end(i - 1); axis < end(i); ++axis) extent *= tensor.dim(axis);
    return extent;
  }
  LATHE_DEVICE_MEMBER void find(const long (&c)[4], long (&at)[kAxes]) const {
    LATHE_UNROLL
    for (int i = 0; i < 4; ++i) {
      auto rest = static_cast<unsigned>(c[i]);
      LATHE_UNROLL
      for (int axis = kAxes - 1; axis >= 0; --axis) {
        if (axis < end(i - 1) || axis >= end(i)) continue;
        const auto extent = static_cast<unsigned>(tensor.dim(axis));
        const bool is_outermost = axis == end(i - 1);
        at[axis] = is_outermost ? rest : rest % extent;
        rest = is_outermost ? 0 : rest / extent;
      }
    }
  }
};

// All of W elements: rows have a multiple of W.
template <int D, int W, class Tensor, int Batch, int Heads, int Rows, int Size, int Run>
LATHE_DEVICE void load(const Collapsed<Tensor, Batch, Heads, Rows, Size, Run>& tensor, const long (&c)[4],
                       float (&v)[W], int) {
  static_assert(D == 3, "rows are read");
  constexpr int kAxes = Tensor::kRank, kRun = Run < W ? Run : W;
  LATHE_UNROLL
  for (int i = 0; i < W; i += kRun) {
    const long own[4] = {c[0], c[1], c[2], c[3] + i};
    long at[kAxes];
    tensor.find(own, at);
    float run[kRun];
    load<kAxes - 1, kRun>(tensor.tensor, at, run, kRun);
    LATHE_UNROLL
    for (int j = 0; j < kRun; ++j) v[i + j] = run[j];
  }
}

// A cache of keys or values in whose place `first` of each entry of the batch new rows begin.
template <class Cache_, class Rows, class First>
struct Updated : Cache_ {
  using Cache = Cache_;
  Rows rows;
  First first;
  // Of the entry that is read: where new rows begin, and how many of them have a place.
  long begin;
  int count;

  // No row has a place where the first one has none.
  LATHE_DEVICE_MEMBER Updated of_entry(long entry) const {
    constexpr long kNowhere = 1L << 30;  // behind all keys
    const long place[1] = {entry}, at = static_cast<long>(first.data[offset_of(first, place)]);
    const bool has_some = at >= 0 && at < this->dim(2);
    const long room = has_some ? this->dim(2) - at : 0, all = rows.dim(2);
    return {static_cast<const Cache&>(*this), rows, first, has_some ? at : kNowhere,
            static_cast<int>(room < all ? room : all)};
  }
  // The number of a row among the new ones; -1: it is none.
  LATHE_DEVICE_MEMBER long new_row(long key) const {
    const auto row = static_cast<int>(key - begin);
    return static_cast<unsigned>(row) < static_cast<unsigned>(count) ? row : -1;
  }
};

template <int D, int W, class Cache, class Rows, class First>
LATHE_DEVICE void load(const Updated<Cache, Rows, First>& tensor, const long (&c)[4], float (&v)[W], int count) {
  const long row[4] = {c[0], c[1], tensor.new_row(c[2]), c[3]};
  if (row[2] < 0) return load<D, W>(static_cast<const Cache&>(tensor), c, v, count);
  load<D, W>(tensor.rows, row, v, count);
  LATHE_UNROLL
  for (float& each : v) each = to_float(from_float<typename Cache::Type>(each));  // as the cache holds it
}

template <class Tensor>
LATHE_DEVICE const Tensor& of_entry(const Tensor& tensor, long) {
  return tensor;
}
template <class Cache, class Rows, class First>
LATHE_DEVICE Updated<Cache, Rows, First> of_entry(const Updated<Cache, Rows, First>& tensor, long entry) {
  return tensor.of_entry(entry);
}

// The number of a row among new ones, or -1; whether one of so many is new.
template <class Tensor>
LATHE_DEVICE long new_row(const Tensor&, long) {
  return -1;
}
template <class Cache, class Rows, class First>
LATHE_DEVICE long new_row(const Updated<Cache, Rows, First>& tensor, long key) {
  return tensor.new_row(key);
}
template <int kRows, class Tensor>
LATHE_DEVICE bool has_new(const Tensor&, long) {
  return false;
}
template <int kRows, class Cache, class Rows, class First>
LATHE_DEVICE bool has_new(const Updated<Cache, Rows, First>& tensor, long key) {
  return key < tensor.begin + tensor.count && key + kRows > tensor.begin;
}

// Writes new rows of the head at kv, from row `first` of them on, by so many threads.
template <int Threads, class Tensor>
LATHE_DEVICE void write_new(const Tensor&, const long (&)[4], int, int) {}
template <int Threads, class Cache, class Rows, class First>
LATHE_DEVICE void write_new(const Updated<Cache, Rows, First>& tensor, const long (&kv)[4], int first, int thread) {
  constexpr int kVector = 16 / static_cast<int>(sizeof(typename Cache::Type));
  const auto columns = static_cast<int>(tensor.dim(3)) / kVector;
  const int vectors = tensor.count * columns;
  for (int i = first * columns + thread; i < vectors; i += Threads) {
    const long from[4] = {kv[0], kv[1], i / columns, i % columns * kVector};
    const long to[4] = {kv[0], kv[1], tensor.begin + from[2], from[3]};
    float v[kVector];
    load<3, kVector>(tensor.rows, from, v, kVector);
    store<3, kVector>(static_cast<const Cache&>(tensor), to, v, kVector);
  }
}
