// SPDX-License-Identifier: Apache-2.0
// Products of few rows by constant weights: a block has a few columns, and its warps share K.
#pragma once

#include "gemv/stream.cuh"

namespace gemv {

// f32 on the scalar units: 4 columns by kRows rows, a lane has 4 neighbours of 128 elements of K. Weights are K-major,
// their rows padded to 16 bytes.
template <int kWarps, int kRows>
struct DotTile {
  static constexpr int kM = kRows, kN = 4, kK = 128;
  static constexpr int kThreads = 32 * kWarps;

  float sums[kRows][kN];

  LATHE_DEVICE_MEMBER void run(const float* weights, long weights_pitch, const float* x, long pitch, long m, long n,
                               long k, const gemm::Block& block) {
    dependency_wait();
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) LATHE_UNROLL
    for (int c = 0; c < kN; ++c) sums[r][c] = 0;
    LATHE_NO_UNROLL
    for (int panel = warp(); panel < block.blocks; panel += kWarps) {
      const long at = block.k + panel * static_cast<long>(kK) + lane() * 4;
      if (at >= k) break;
      Vec<float, 4> columns[kN];
      LATHE_UNROLL
      for (int c = 0; c < kN; ++c) {
        const long column = block.column + c < n ? block.column + c : n - 1;
        columns[c] = load_streaming(reinterpret_cast<const Vec<float, 4>*>(weights + column * weights_pitch + at));
      }
      LATHE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if (r >= m) break;
        const Vec<float, 4> row = load_some<4>(x + r * pitch + at, k - at);
        LATHE_UNROLL
        for (int c = 0; c < kN; ++c) LATHE_UNROLL
        for (int e = 0; e < 4; ++e) sums[r][c] = fmaf(row.at[e], columns[c].at[e], sums[r][c]);
      }
    }
  }

  LATHE_DEVICE_MEMBER void stage(float* to) const {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) LATHE_UNROLL
    for (int c = 0; c < kN; ++c) {
      float sum = sums[r][c];
      LATHE_UNROLL
      for (int distance = 16; distance > 0; distance /= 2) sum += shuffle_xor(sum, distance);
      if (lane() == 0) to[r * kN + c] = sum;
    }
  }
};

// Adds up the warps' sums and gives them to the sink, W columns at once.
template <int W, int kWarps, class Tile, class Sink>
LATHE_DEVICE void finish(const Tile& tile, const Sink& sink, const gemm::Block& block, long m, long n, float* shared) {
  constexpr int kTileSize = Tile::kM * Tile::kN, kVectors = Tile::kN / W;
  tile.stage(shared + warp() * kTileSize);
  barrier();
  for (int i = thread_x(); i < kTileSize; i += Tile::kThreads) {
    float sum = shared[i];
    LATHE_UNROLL
    for (int w = 1; w < kWarps; ++w) sum += shared[w * kTileSize + i];
    shared[i] = sum;
  }
  barrier();
  for (int i = thread_x(); i < Tile::kM * kVectors; i += Tile::kThreads) {
    const int at = i / kVectors, v = i % kVectors * W;
    const long row = block.row + at, column = block.column + v;
    if (row >= m || column >= n) continue;
    float values[W];
    gemm::read_sums(shared + at * Tile::kN + v, values);
    sink.put(values, row, column, gemm::min_of(n - column, W));
  }
}

}  // namespace gemv
