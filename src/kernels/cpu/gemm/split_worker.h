// SPDX-License-Identifier: Apache-2.0
// One thread's share of a product of f32 in matrix registers (gemm/split_floats.h).
#pragma once

#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/share.h"
#include "kernels/cpu/gemm/split_floats.h"

namespace lathe::cpu::gemm {

// Where a thread has what, in floats, for so many rows at most. More of either need no less.
struct SplitScratch {
  SplitScratch(int64_t rows, int64_t k);
  int64_t b, partial, end;  // terms of a block of rows are in front
};

// Blocks of rows, of each of which A is split once; blocks of K, whose sums are kept for the columns of a few panels;
// and columns of a tile, which are split for all rows of the block.
class SplitWorker {
 public:
  // `floats`: the tiles that make sums again. `scratch`: where rows and taps are listed, as in a Worker; `terms`: a
  // SplitScratch. The problem's taps are neighbours in one row of A.
  SplitWorker(const GemmProblem& problem, const SplitFunctions& functions, const TileTable& floats,
              const TileScratch& scratch, float* terms);

  void run(const Share& share);

 private:
  // Columns of a panel, from its first on.
  struct Chunk {
    const float* b;
    int64_t b_stride, column;
    int columns, halves;
  };
  // Steps of K.
  struct Depth {
    int64_t first, count;
    bool is_last;
  };

  void split_rows();
  void run_panels(int64_t first, int64_t last);
  Chunk chunk_at(int64_t first_panel, int64_t index) const;
  void run_chunk(const Chunk& chunk, const Depth& depth, const Chunk& next);
  void finish(const Chunk& chunk, int64_t row, int count, float* sums, int64_t stride);
  void multiply_floats(const Chunk& chunk, int64_t row, int count, float* sums, int64_t stride);

  const GemmProblem& problem_;
  const SplitFunctions& functions_;
  const TileTable& floats_;
  TileScratch scratch_;
  const SplitBlocks blocks_;
  MatrixSetup matrices_;
  const SplitScratch places_;
  float *const a_, *const b_, *const partial_;
  int64_t first_row_ = 0, rows_ = 0;  // of the block
  int64_t groups_ = 0;                // of `height_` rows
  int height_ = 1;
  int64_t first_column_ = 0;  // of the sums that are kept
};

}  // namespace lathe::cpu::gemm
