// SPDX-License-Identifier: Apache-2.0
// Products of few rows by constant weights: slices of a few columns, whose warps share K.
#pragma once

#include "gemv/stream.cuh"

namespace gemv {

// f32 on the scalar units: 4 columns by kRows rows, a lane has 4 neighbours of 128 elements of K. Weights are K-major,
// their rows padded to 16 bytes.
template <int kWarps, int kRows>
struct DotTile {
  static constexpr int kM = kRows, kSlice = 4, kN = kSlice, kK = 128;
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

// Adds up the sums of each slice's kWarps warps and gives them to the sink, W columns at once.
template <int W, int kWarps, class Tile, class Sink>
LATHE_DEVICE void finish(const Tile& tile, const Sink& sink, const gemm::Block& block, long m, long n, float* shared) {
  constexpr int kSize = Tile::kM * Tile::kSlice, kVectors = Tile::kN / W;
  static_assert(Tile::kSlice % W == 0, "a vector is of one slice");
  tile.stage(shared + warp() * kSize);
  barrier();
  const int rows = gemm::min_of(m - block.row, Tile::kM);
  for (int i = thread_x(); i < rows * kVectors; i += Tile::kThreads) {
    const int row = i / kVectors, at = i % kVectors * W;
    const long column = block.column + at;
    if (column >= n) continue;
    const float* first = shared + at / Tile::kSlice * kWarps * kSize + row * Tile::kSlice + at % Tile::kSlice;
    float sums[W] = {};
    LATHE_UNROLL
    for (int w = 0; w < kWarps; ++w) {
      float own[W];
      gemm::read_sums(first + w * kSize, own);
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) sums[j] += own[j];
    }
    sink.put(sums, block.row + row, column, gemm::min_of(n - column, W));
  }
}

}  // namespace gemv
