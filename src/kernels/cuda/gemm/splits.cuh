// SPDX-License-Identifier: Apache-2.0
// Products whose K is split over blocks: the last block of a tile adds up the sums of all.
#pragma once

#include "gemm/main_loop.cuh"
#include "lib/last_block.cuh"

namespace gemm {

// Where the sums of a tile's blocks lie in memory, [split][vector][thread], and how many vectors of each pass through
// the ring at once.
template <int kSplits, class Tile>
struct Parts {
  using Accumulator = typename Tile::Accumulator;
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(Accumulator));
  static constexpr int kVectors = Tile::kSums / kWidth;
  static constexpr int kFit = kRingBytes<Tile> / (16 * Tile::kThreads * kSplits);
  static constexpr int kAtOnce = kFit < 1 ? 1 : kFit < kVectors ? kFit : kVectors;
  using Vector = Vec<Accumulator, kWidth>;

  Vector* begin;  // the thread's first of the first split

  LATHE_DEVICE_MEMBER Vector* at(int split, int vector) const {
    return begin + (split * kVectors + vector) * static_cast<long>(Tile::kThreads);
  }
  LATHE_DEVICE_MEMBER static Vector get(Tile& tile, int vector) {
    Vector v;
    LATHE_UNROLL
    for (int i = 0; i < kWidth; ++i) v.at[i] = tile.sum(vector * kWidth + i);
    return v;
  }
};

// Leaves the block's sums in `memory`. True in the last block of tile `index`, which has the sums of all splits then,
// added in their order. Those of other blocks come through the ring, so that many are under way and registers are left;
// a thread reads there only what it has put there.
template <int kSplits, class Tile>
LATHE_DEVICE bool merge_splits(Tile& tile, typename Tile::Accumulator* memory, unsigned* counters, long index,
                               int split, char* ring) {
  using P = Parts<kSplits, Tile>;
  using Vector = typename P::Vector;
  const P parts{reinterpret_cast<Vector*>(memory) + index * kSplits * P::kVectors * Tile::kThreads + thread_x()};
  LATHE_UNROLL
  for (int v = 0; v < P::kVectors; ++v) store_vector(parts.at(split, v)->at, P::get(tile, v));
  if (!comes_last(counters + index, kSplits)) return false;
  const auto slot = [&](int s, int v) {
    return reinterpret_cast<Vector*>(ring) + (s * P::kAtOnce + v) * Tile::kThreads + thread_x();
  };
  LATHE_UNROLL
  for (int first = 0; first < P::kVectors; first += P::kAtOnce) {
    const int count = P::kVectors - first < P::kAtOnce ? P::kVectors - first : P::kAtOnce;
    LATHE_NO_UNROLL
    for (int s = 0; s < kSplits; ++s) {
      if (s == split) continue;
      LATHE_NO_UNROLL
      for (int v = 0; v < count; ++v) copy_async16(slot(s, v), parts.at(s, first + v), 16);
    }
    copy_async_commit();
    LATHE_UNROLL
    for (int v = 0; v < count; ++v) *slot(split, v) = P::get(tile, first + v);
    copy_async_wait<0>();
    LATHE_UNROLL
    for (int v = 0; v < count; ++v) {
      Vector total = *slot(0, v);
      LATHE_UNROLL
      for (int s = 1; s < kSplits; ++s) {
        const Vector part = *slot(s, v);
        LATHE_UNROLL
        for (int i = 0; i < P::kWidth; ++i) total.at[i] += part.at[i];
      }
      LATHE_UNROLL
      for (int i = 0; i < P::kWidth; ++i) tile.sum((first + v) * P::kWidth + i) = total.at[i];
    }
  }
  barrier();  // the ring is free for other use again
  return true;
}

}  // namespace gemm
