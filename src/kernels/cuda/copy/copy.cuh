// SPDX-License-Identifier: Apache-2.0
// Strided copies, collapsed by the host, with conversion where the element types differ.
#pragma once

#include "lib/tiles.cuh"
#include "lib/vectors.cuh"

constexpr int kCopyThreads = 256;

template <class To, class From>
LATHE_DEVICE To convert_element(From value) {
  if constexpr (is_same<To, From>)
    return value;
  else if constexpr (is_same<To, double>)
    return to_double(value);
  else
    return from_float<To>(to_float(value));
}

// Rows along the last dimension, which both tensors walk with small steps.
template <int W, int kUnroll, class Index, class In, class Out>
LATHE_DEVICE void copy_rows(const In& in, const Out& out) {
  using From = typename In::Type;
  using To = typename Out::Type;
  constexpr int D = Out::kRank - 1;
  // A vector of either tensor is one access if its elements lie side by side.
  constexpr int kRead = In::kUnit == D ? W : 1, kWrite = Out::kUnit == D ? W : 1;
  const Index total = count_vectors<W, Index>(out);
  const Index threads = kCopyThreads;
  const Index first = static_cast<Index>(block_x()) * threads * kUnroll + static_cast<Index>(thread_x());
  dependency_wait();
  From v[kUnroll][W];
  long to[kUnroll];
  int count[kUnroll];
  LATHE_UNROLL
  for (int u = 0; u < kUnroll; ++u) {
    const Index vector = first + static_cast<Index>(u) * threads;
    long c[Out::kRank];
    count[u] = vector < total ? vector_coordinates<W>(out, vector, c) : 0;
    if (count[u] <= 0) continue;
    to[u] = offset_of(out, c);
    const From* from = in.data + offset_of(in, c);
    if (count[u] == W) {
      LATHE_UNROLL
      for (int i = 0; i < W; i += kRead) {
        const Vec<From, kRead> part = load_vector<kRead>(from + i * in.stride(D));
        LATHE_UNROLL
        for (int j = 0; j < kRead; ++j) v[u][i + j] = part.at[j];
      }
    } else {
      LATHE_UNROLL
      for (int i = 0; i < W; ++i)
        if (i < count[u]) v[u][i] = from[i * in.stride(D)];
    }
  }
  LATHE_UNROLL
  for (int u = 0; u < kUnroll; ++u) {
    if (count[u] == W) {
      LATHE_UNROLL
      for (int i = 0; i < W; i += kWrite) {
        Vec<To, kWrite> part;
        LATHE_UNROLL
        for (int j = 0; j < kWrite; ++j) part.at[j] = convert_element<To>(v[u][i + j]);
        store_vector(out.data + to[u] + i * out.stride(D), part);
      }
    } else {
      LATHE_UNROLL
      for (int i = 0; i < W; ++i)
        if (i < count[u]) out.data[to[u] + i * out.stride(D)] = convert_element<To>(v[u][i]);
    }
  }
}

// The last dimension is the output's fast one, kFast the input's: tiles pass through shared memory, kPack elements at
// once.
template <int kTile, int kFast, int kPack, class In, class Out>
LATHE_DEVICE void copy_tiles(const In& in, const Out& out) {
  using T = typename In::Type;
  using To = typename Out::Type;
  constexpr int kLast = Out::kRank - 1, kPitch = kTilePitch<T, kTile>, kRow = kTile / kPack;
  T* tile = reinterpret_cast<T*>(dynamic_shared());
  const TilePlace<kTile, kFast, Out::kRank> place(out);
  To* to = out.data + offset_of(out, place.first);
  dependency_wait();
  place.template read<kPack>(in, tile);
  barrier();
  LATHE_UNROLL
  for (int k = 0; k < kTile * kRow; k += kTileThreads) {
    const int i = k + thread_x(), x = i % kRow * kPack, y = i / kRow;
    if (y >= place.fasts || x >= place.lasts) continue;
    To* target = to + x + y * out.stride(kFast);
    if (x + kPack <= place.lasts) {
      Vec<To, kPack> part;
      LATHE_UNROLL
      for (int j = 0; j < kPack; ++j) part.at[j] = convert_element<To>(tile[(x + j) * kPitch + y]);
      store_vector(target, part);
    } else {
      for (int j = 0; x + j < place.lasts; ++j) target[j] = convert_element<To>(tile[(x + j) * kPitch + y]);
    }
  }
}
