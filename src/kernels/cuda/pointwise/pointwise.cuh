// SPDX-License-Identifier: Apache-2.0
// A pure pointwise program over tensors of one shape, collapsed by the host. A thread does kUnroll vectors of W
// elements, neighbouring threads neighbouring vectors.
#pragma once

#include "lib/results.cuh"
#include "lib/tiles.cuh"
#include "lib/vectors.cuh"

template <int W, int kUnroll, class Index, class Fusion, class Space, class... Out>
LATHE_DEVICE void pointwise(const Fusion& fusion, const Space& space, const Out&... outputs) {
  constexpr int D = Space::kRank - 1;
  const Index total = count_vectors<W, Index>(space);
  const Index threads = static_cast<Index>(block_threads());
  const Index first = static_cast<Index>(block_x()) * threads * kUnroll + static_cast<Index>(thread_x());
  dependency_wait();
  long c[kUnroll][Space::kRank];
  int count[kUnroll];
  float v[kUnroll][Fusion::kOutputs][W];
  // All loads come before the first store: outputs may be the memory of inputs, so the compiler cannot reorder them.
  LATHE_UNROLL
  for (int u = 0; u < kUnroll; ++u) {
    const Index vector = first + static_cast<Index>(u) * threads;
    count[u] = vector < total ? vector_coordinates<W>(space, vector, c[u]) : 0;
    if (count[u] > 0) fusion.template evaluate<D>(v[u], c[u], count[u]);
  }
  LATHE_UNROLL
  for (int u = 0; u < kUnroll; ++u)
    if (count[u] > 0) store_results_from<Fusion, D, 0>(v[u], c[u], count[u], outputs...);
}

// What a program reads of a tile: some tensors by way of shared memory, where `view` finds them, others where they are.
template <class Place, int kTile>
struct TileReader {
  const Place& place;
  unsigned char* shared;

  template <class View, class In>
  LATHE_DEVICE_MEMBER void stage(View& view, const In& in) {
    using T = typename In::Type;
    constexpr int kWord = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;
    constexpr int kPack = In::kVector < kWord ? In::kVector : kWord;
    view.data = reinterpret_cast<T*>(shared);
    place.template read<kPack>(in, view.data);
    shared += (kTile * kTilePitch<T, kTile> * static_cast<int>(sizeof(T)) + 15) / 16 * 16;
  }
  template <class Tensor>
  LATHE_DEVICE_MEMBER void shift(Tensor& tensor) {
    tensor.data += offset_of(tensor, place.first);
  }
};

// A program on tiles, with coordinates that count from a tile's first element. read(reader, fusion) tells the reader
// how each of the program's tensors is read.
template <int kTile, int kFast, int W, class Fusion, class Out, class Read>
LATHE_DEVICE void pointwise_tiles(Fusion fusion, Out out, const Read& read) {
  constexpr int R = Out::kRank, kLast = R - 1, kRow = kTile / W;
  using Place = TilePlace<kTile, kFast, R>;
  const Place place(out);
  TileReader<Place, kTile> reader{place, dynamic_shared()};
  out.data += offset_of(out, place.first);
  dependency_wait();
  read(reader, fusion);
  barrier();
  LATHE_NO_UNROLL
  for (int i = thread_x(); i < kTile * kRow; i += kTileThreads) {
    long c[R] = {};
    c[kLast] = i % kRow * W;
    c[kFast] = i / kRow;
    if (c[kLast] >= place.lasts || c[kFast] >= place.fasts) continue;
    const int count = place.lasts - c[kLast] < W ? static_cast<int>(place.lasts - c[kLast]) : W;
    float v[Fusion::kOutputs][W];
    fusion.template evaluate<kLast>(v, c, count);
    store_result<Fusion, kLast>(out, c, v[0], count);
  }
}
