// SPDX-License-Identifier: Apache-2.0
// Tiles that pass through shared memory, so that tensors that are contiguous along different dimensions are both
// accessed in long runs: the output's runs are along its last dimension, those of what is staged along kFast.
#pragma once

#include "lib/tensor.cuh"

constexpr int kTileThreads = 256;

// Rows of a tile start one word (of at least four bytes) further on each, so that columns hit different banks.
template <class T, int kTile>
inline constexpr int kTilePitch = kTile + (sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1);

// The block's tile of the output's space.
template <int kTile, int kFast, int R>
struct TilePlace {
  static constexpr int kLast = R - 1;
  long first[R];
  long lasts, fasts;  // elements from there on

  template <class Out>
  LATHE_DEVICE_MEMBER explicit TilePlace(const Out& out) {
    const auto across = static_cast<unsigned>((out.dim(kLast) + kTile - 1) / kTile);
    const auto down = static_cast<unsigned>((out.dim(kFast) + kTile - 1) / kTile);
    const auto index = static_cast<unsigned>(block_x());
    unsigned rest = index / (across * down);
    LATHE_UNROLL
    for (int i = R - 1; i >= 0; --i) {
      first[i] = 0;
      if (i == kLast || i == kFast) continue;
      const auto dim = static_cast<unsigned>(out.dim(i));
      first[i] = rest % dim;
      rest /= dim;
    }
    first[kLast] = static_cast<long>(index % across) * kTile;
    first[kFast] = static_cast<long>(index / across % down) * kTile;
    lasts = out.dim(kLast) - first[kLast];
    fasts = out.dim(kFast) - first[kFast];
  }

  // A tensor's elements of the tile, kPack at once.
  template <int kPack, class In>
  LATHE_DEVICE_MEMBER void read(const In& in, typename In::Type* tile) const {
    constexpr int kRow = kTile / kPack, kPitch = kTilePitch<typename In::Type, kTile>;
    const auto* from = in.data + offset_of(in, first);
    LATHE_UNROLL
    for (int k = 0; k < kTile * kRow; k += kTileThreads) {
      const int i = k + thread_x(), x = i % kRow * kPack, y = i / kRow;
      if (y >= lasts || x >= fasts) continue;
      const auto* source = from + x + y * in.stride(kLast);
      if (x + kPack <= fasts)
        move_vector<kPack>(tile + y * kPitch + x, source);
      else
        for (int j = 0; x + j < fasts; ++j) tile[y * kPitch + x + j] = source[j];
    }
  }
};
