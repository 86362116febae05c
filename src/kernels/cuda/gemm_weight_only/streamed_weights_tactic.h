// SPDX-License-Identifier: Apache-2.0
// Weights of 4 and 8 bits as kernels of few rows stream and dequantise them (gemm_weight_only.cuh): how they are
// packed, and the tiles that read them.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/gemv/stream_tactic.h"
#include "kernels/cuda/source.h"
#include "tuning/packed_weights.h"

namespace lathe::cuda::weight_only {

// The choice: warps of a slice of columns, and such slices of a block.
struct StreamBlocks {
  int64_t warps = 8, groups = 1;
};

struct StreamTile {
  int64_t rows;
  StreamBlocks blocks;
  int64_t threads() const { return 32 * blocks.warps * blocks.groups; }
  int64_t sums_bytes() const { return blocks.warps * blocks.groups * rows * gemv::kStreamColumns * 4; }
};

class PackedStream {
 public:
  // Matrices of the same size, one behind the other, of which rows of `dtype` are multiplied by one each.
  PackedStream(std::vector<PackedWeights> matrices, DType dtype, const Target& target);

  const PackedWeights& first() const { return matrices_[0]; }
  int64_t matrices() const { return static_cast<int64_t>(matrices_.size()); }
  DType dtype() const { return dtype_; }  // of the rows
  int64_t slices() const;                 // of columns, of a matrix
  int64_t panels() const;                 // of a slice
  double element_bytes() const;           // with its share of a scale
  bool has_zeros() const { return has_zeros_; }
  bool is_scalar() const { return is_scalar_; }  // matrix units do not multiply the type
  // Inputs of the emission that they are: codes, scales, and zeros if there are any.
  size_t inputs() const { return has_zeros_ ? 3 : 2; }

  // Whether a row by itself may have a tile of its own (one_row.cuh), and whether it is one.
  bool has_one_row() const;
  bool is_one_row(const StreamTile& tile) const { return !is_scalar_ && tile.rows == 1; }
  int64_t most_rows() const { return is_scalar_ ? 8 : 64; }
  int64_t tile_rows(int64_t rows) const;  // of a tile for so many
  gemv::PanelStream stream(const StreamBlocks& blocks) const;
  // Shared memory for `rows` rows, which are read from there if it is not 0; `width` of their elements are neighbours.
  int64_t staged_bytes(const StreamTile& tile, int64_t rows, int width, const Target& target) const;

  // That a multiprocessor's registers are to have room for. Where a warp takes panels in several turns, the compiler
  // loads the next turn's row and scales early, and a tile of one row would have 172 registers for each thread.
  int min_blocks(const StreamTile& tile, const Target& target) const;

  // In the order of their predicted times, for so many rows of each of `used` matrices: by tiles of tile_rows().
  std::vector<Config> configs(const Target& target, int64_t rows, int64_t used = 1) const;
  // The best few for tiles of one row, of each of `used` matrices; none where has_one_row() is false.
  std::vector<Config> one_row_configs(const Target& target, int64_t used = 1) const;

  // Adds them to the emission's inputs.
  Result<> pack_into(Emission& emission) const;
  // Declares them as B, S and Z, inputs 1 to inputs() of the emission.
  void declare(Source& source, const Emission& emission) const;
  // The argument of run() that they are: those of the matrix that is numbered by the text, "" = the only one.
  std::string argument(std::string_view matrix) const;
  std::string columns_type() const;
  std::string_view header(const StreamTile& tile) const;
  // What reads the tile's rows: `rows` is the type that says where one begins, with `width` neighbours that are read at
  // once.
  std::string reader(const StreamTile& tile, std::string_view rows, int width, int64_t staged) const;
  std::string tile_type(const StreamTile& tile, std::string_view reader, int width) const;

 private:
  int64_t scale_blocks() const;
  DType scale_type() const { return is_scalar_ ? DType::f32 : dtype_; }
  int offset(int64_t n) const;
  // By tiles of `tile` rows.
  std::vector<Config> configs_of(int64_t tile, const Target& target, int64_t rows, int64_t used) const;
  Result<Tensor> pack_codes() const;
  template <class Of>
  Result<Tensor> pack_pairs(const Of& of) const;

  std::vector<PackedWeights> matrices_;
  DType dtype_;
  bool is_scalar_, has_zeros_;
};

}  // namespace lathe::cuda::weight_only
