// SPDX-License-Identifier: Apache-2.0
// Products of few rows by constant weights: the weights pass once from memory to registers, in 16-byte loads that leave
// the caches alone. A block has a few columns; its warps share K.
#pragma once

#include "gemm/gemm.cuh"

namespace gemv {

// W elements, of which `count` are there; zeros for the others.
template <int W, class T>
LATHE_DEVICE Vec<T, W> load_some(const T* from, long count) {
  if (count >= W) return load_vector<W>(from);
  Vec<T, W> result = {};
  LATHE_UNROLL
  for (int i = 0; i < W; ++i)
    if (i < count) result.at[i] = from[i];
  return result;
}

// 16-bit elements on tensor cores, the weights as left operand: 16 columns of the product by 8 * kTiles rows. Weights
// are packed as [column / 16][K / 64][4][lane][8]: what a lane multiplies in one step. Within 64 elements of K a lane
// has 16 neighbours, so that it reads its part of a row as vectors too (any order of K gives the same sums).
template <class T, int kWarps, int kTiles>
struct StreamTile {
  static constexpr int kM = 8 * kTiles, kN = 16, kK = 64;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kAhead = 2;  // panels that a warp waits for

  float sums[kTiles][4];

  LATHE_DEVICE_MEMBER void run(const T* weights, const T* x, long pitch, long m, long k, const gemm::Block& block) {
    const int panels = static_cast<int>((k + kK - 1) / kK);
    const auto first = static_cast<int>(block.k / kK);
    const T* column = weights + (block.column / kN * panels + first) * (kN * kK) + lane() * 8;
    Vec<T, 8> ahead[kAhead][4];
    LATHE_UNROLL
    for (int i = 0; i < kAhead; ++i) fetch(ahead[i], column, warp() + i * kWarps, block.blocks);
    dependency_wait();
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) sums[j][e] = 0;
    unsigned row[8] = {};  // of one tile of rows, for the panel in turn; more are read as they are multiplied
    const auto load = [&](int panel) {
      if (kTiles == 1 && panel < block.blocks)
        load_row(row, x, pitch, lane() / 4, m, k, (first + panel) * static_cast<long>(kK));
    };
    load(warp());
    for (int panel = warp(); panel < block.blocks; panel += kAhead * kWarps) {
      LATHE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int at = panel + i * kWarps;
        if (at >= block.blocks) break;
        unsigned words[4][4], own[8];
        LATHE_UNROLL
        for (int step = 0; step < 4; ++step) copy_words(words[step], ahead[i][step]);
        LATHE_UNROLL
        for (int e = 0; e < 8; ++e) own[e] = row[e];
        fetch(ahead[i], column, at + kAhead * kWarps, block.blocks);
        load(at + kWarps);
        LATHE_UNROLL
        for (int j = 0; j < kTiles; ++j) {
          if (kTiles > 1) load_row(own, x, pitch, j * 8 + lane() / 4, m, k, (first + at) * static_cast<long>(kK));
          multiply(sums[j], words, own);
        }
      }
    }
  }

  // [row][column], kM x kN.
  LATHE_DEVICE_MEMBER void stage(float* to) const {
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) to[(j * 8 + lane() % 4 * 2 + e % 2) * kN + lane() / 4 + e / 2 * 8] = sums[j][e];
  }

 private:
  LATHE_DEVICE_MEMBER static void fetch(Vec<T, 8> (&to)[4], const T* column, int panel, int panels) {
    if (panel >= panels) return;
    LATHE_UNROLL
    for (int step = 0; step < 4; ++step)
      to[step] = load_streaming(reinterpret_cast<const Vec<T, 8>*>(column + (panel * 4L + step) * 256));
  }

  template <int N>
  LATHE_DEVICE_MEMBER static void copy_words(unsigned (&to)[N], const Vec<T, 2 * N>& from) {
    LATHE_UNROLL
    for (int i = 0; i < N; ++i)
      to[i] = static_cast<unsigned>(from.at[2 * i].bits) | static_cast<unsigned>(from.at[2 * i + 1].bits) << 16;
  }

  // A lane's 16 elements of a row; zeros outside.
  LATHE_DEVICE_MEMBER static void load_row(unsigned (&to)[8], const T* x, long pitch, int row, long m, long k,
                                           long at) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      unsigned words[4] = {};
      const long from = at + lane() % 4 * 16 + half * 8;
      if (row < m) copy_words(words, load_some<8>(x + row * pitch + from, k - from));
      LATHE_UNROLL
      for (int i = 0; i < 4; ++i) to[half * 4 + i] = words[i];
    }
  }

  LATHE_DEVICE_MEMBER static void multiply(float (&to)[4], const unsigned (&weights)[4][4], const unsigned (&row)[8]) {
    LATHE_UNROLL
    for (int step = 0; step < 4; ++step) {
      const unsigned pair[2] = {row[step * 2], row[step * 2 + 1]};
      mma_m16n8k16(to, weights[step], pair, T{});
    }
  }
};

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
