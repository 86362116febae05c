// SPDX-License-Identifier: Apache-2.0
// One thread's share of a product of f32 in matrix registers (gemm/split_floats.h).
#pragma once

#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/share.h"
#include "kernels/cpu/gemm/split_floats.h"

namespace lathe::cpu::gemm {

// Floats of scratch that a thread needs for so many rows at most, besides lists of rows and taps.
int64_t split_scratch_floats(int64_t rows, int64_t k, int64_t taps);

// Blocks of rows, of each of which A is split once; blocks of K, whose sums are kept for the columns of a few panels;
// and columns of a tile, which are split for all rows of the block.
class SplitWorker {
 public:
  // `floats`: the tiles that make sums again. `scratch`: where rows and taps are listed, as in a Worker; `terms`:
  // split_scratch_floats().
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
  const float* row_of(const TileTaps& filled, int row, int count);
  void run_panels(int64_t first, int64_t last);
  Chunk chunk_at(int64_t first_panel, int64_t index) const;
  void run_chunk(const Chunk& chunk, const Depth& depth, const Chunk& next);
  void finish(const Chunk& chunk, int64_t row, int count, float* sums, int64_t stride);
  void multiply_floats(const Chunk& chunk, int64_t row, int count, float* sums, int64_t stride);

  const GemmProblem& problem_;
  const SplitFunctions& functions_;
  const TileTable& floats_;
  TileScratch scratch_;
  SplitBlocks blocks_;
  MatrixSetup matrices_;
  float *a_ = nullptr, *b_ = nullptr, *partial_ = nullptr, *row_ = nullptr;
  int64_t first_row_ = 0, rows_ = 0;  // of the block
  int64_t groups_ = 0;                // of `height_` rows
  int height_ = 1;
  int64_t first_column_ = 0;  // of the sums that are kept
};

}  // namespace lathe::cpu::gemm
