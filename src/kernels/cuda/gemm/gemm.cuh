// SPDX-License-Identifier: Apache-2.0
// Matrix products: which block computes what, and the two passes of a product whose K is split.
#pragma once

#include "gemm/collapsed_loader.cuh"
#include "gemm/dense_loader.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/mma_tile.cuh"
#include "gemm/program_loader.cuh"
#include "gemm/simt_tile.cuh"
#include "gemm/wgmma_tile.cuh"

namespace gemm {

// The part of the product that a block computes.
struct Block {
  long row, column;  // of the tile's first element
  long batch;
  int split;
  long k;      // the first of its K
  int blocks;  // of K
};

// Tiles of kRows rows are numbered in bands of kBand of them, down the rows first, so that blocks that run together
// share operands in L2; after them come the splits of K, then the batch. kCluster: the splits of a tile are neighbours,
// a cluster.
template <class Tile, int kRows, unsigned kBand, bool kCluster>
LATHE_DEVICE Block block_at(unsigned index, long m, long n, long k, int splits) {
  const auto rows = static_cast<unsigned>((m + kRows - 1) / kRows);
  const auto columns = static_cast<unsigned>((n + Tile::kN - 1) / Tile::kN);
  const auto width = static_cast<unsigned>(splits);
  const unsigned place = kCluster ? index / width : index;
  const unsigned tile = place % (rows * columns), rest = place / (rows * columns);
  const unsigned band = tile / (kBand * columns), inside = tile % (kBand * columns);
  const unsigned height = rows - band * kBand < kBand ? rows - band * kBand : kBand;
  const auto total = static_cast<int>((k + Tile::kK - 1) / Tile::kK);
  const int share = (total + splits - 1) / splits;
  Block block;
  const bool is_whole = height == kBand;  // then the divisor is a constant, which takes fewer instructions
  const unsigned across = is_whole ? inside / kBand : inside / height, down = inside - across * height;
  block.row = static_cast<long>(band * kBand + down) * kRows;
  block.column = static_cast<long>(across) * Tile::kN;
  block.batch = kCluster ? rest : rest / width;
  block.split = static_cast<int>((kCluster ? index : rest) % width);
  block.k = static_cast<long>(block.split) * share * Tile::kK;
  block.blocks = clamp(total - block.split * share, share);
  return block;
}

template <class Tile, bool kCluster = false>
LATHE_DEVICE Block block_of(long m, long n, long k, int splits) {
  return block_at<Tile, Tile::kM, 8, kCluster>(static_cast<unsigned>(block_x()), m, n, k, splits);
}

// A dense operand's loader at the block's first panel. `data` is the batch's matrix.
template <bool kMnMajor, class Loader, class T>
LATHE_DEVICE void start_dense(Loader& loader, const T* data, long pitch, long first, long extent, const Block& block,
                              long k) {
  if constexpr (kMnMajor)
    loader.start(data, pitch, block.k, k, first, extent);
  else
    loader.start(data, pitch, first, extent, block.k, k);
}

// Adds up the sums of splits that are `step` elements from each other.
template <int kSplits, int W, class Accumulator>
LATHE_DEVICE void add_splits(const Accumulator* from, long step, Accumulator (&total)[W]) {
  constexpr int kAtOnce = kSplits < 4 ? kSplits : 4;  // on the way at the same time
  LATHE_UNROLL
  for (int i = 0; i < W; ++i) total[i] = 0;
  LATHE_UNROLL
  for (int first = 0; first < kSplits; first += kAtOnce) {
    Accumulator partials[kAtOnce][W];
    LATHE_UNROLL
    for (int k = 0; k < kAtOnce; ++k)
      if (first + k < kSplits) read_sums(from + (first + k) * step, partials[k]);
    LATHE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) LATHE_UNROLL
    for (int i = 0; i < W; ++i)
      if (first + k < kSplits) total[i] += partials[k][i];
  }
}

// Adds up the sums of the splits, [batch][split][row][pitch], and finishes them. One thread for W columns.
template <int W, int kSplits, class Accumulator, class MakeSink>
LATHE_DEVICE void reduce_splits(const Accumulator* sums, long rows, long columns, long pitch, long batches,
                                const MakeSink& sink_of) {
  dependency_wait();
  const long vectors = (columns + W - 1) / W;
  const long index = static_cast<long>(block_x()) * block_threads() + thread_x();
  if (index >= batches * rows * vectors) return;
  const long column = index % vectors * W, row = index / vectors % rows, batch = index / vectors / rows;
  Accumulator total[W];
  add_splits<kSplits>(sums + (batch * kSplits * rows + row) * pitch + column, rows * pitch, total);
  sink_of(batch).put(total, row, column, min_of(columns - column, W));
}

}  // namespace gemm
