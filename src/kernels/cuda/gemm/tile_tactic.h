// SPDX-License-Identifier: Apache-2.0
// How a matrix product is cut into tiles: the candidates for a problem, and the device code's type for one.
#pragma once

#include <string>
#include <vector>

#include "tuning/tactic.h"

namespace lathe::cuda::gemm {

// The dimension along which a matrix of A or B is contiguous: K, or M or N.
enum class Major { k, mn };

// Columns that four threads have together, of which each has so many neighbours.
constexpr int64_t neighbour_group(int64_t neighbours) { return 4 * neighbours; }

struct TileShape {
  enum Unit : int64_t { tensor_core, scalar, warpgroup, pipeline, sparse } unit = tensor_core;
  int64_t m = 0, n = 0, k = 0;     // elements of a block's tile
  int64_t warp_m = 0, warp_n = 0;  // of a warp's
  int64_t slices = 1;              // warps along K
  int64_t stages = 0;              // panels in the ring
  int64_t splits = 1;              // of K
  bool cluster = false;            // the splits are blocks of a cluster, which add up their sums
  int64_t peers = 1;               // of a pipeline: blocks of a cluster, below each other, that share B
  bool turns = false;              // of a pipeline: two groups of warps have tiles of their own, and multiply in turns
  bool by_rows = false;            // of a pipeline: warps write along rows (Extent::by_rows)
  int64_t neighbours = 0;          // of a pipeline: columns whose sums a thread has, 8 or 16; 0 = pairs
  int64_t scales_bytes = 0;        // of a pipeline: what a warp that multiplies holds of scales by blocks of K
  bool adds_sums() const { return cluster || slices > 1; }  // of several warps or blocks, in the epilogue
  bool operator==(const TileShape&) const = default;
};

// A product as the cost model sees it.
struct Extent {
  DType dtype = DType::f32;
  DType output = DType::f32;
  bool tensor_core = true;  // allowed for the dtype
  Major major_a = Major::k, major_b = Major::k;
  bool gathered = false;       // A is read element by element
  int copy_width = 0;          // of A's loader where a thread stays in its column; 0 = any
  bool copied = false;         // the copy engine may bring both operands (gemm/pipeline.cuh)
  int64_t copied_k = 0;        // K as it counts them, unless 0
  bool sparse = false;         // tiles are of sparse weights (gemm_sparse/gemm_sparse.cuh)
  bool weights_first = false;  // B is constant: a pipeline brings its first panels while the launch before still runs
  bool by_rows = false;        // results are written along rows by a pipeline (gemm/row_sink.cuh)
  int64_t neighbours = 0;      // a pipeline may bring B's columns in an order in which threads have so many neighbours
  // Of sums that are scaled by blocks of K: their length, and whether each column has a scale of its own.
  int64_t scaled_block = 0;
  bool scaled_columns = false;
  Target target;
  int64_t taps = 1;          // how often A's elements are read, as parts of different rows
  int64_t operands = 0;      // of the program, that have an element for each of the output's
  int64_t functions = 0;     // of the program, that take as long as an exponential does
  int64_t instructions = 0;  // of the program
  bool kept = false;         // all sums are kept for another launch
  bool normalized = false;   // another launch normalises the results
  int64_t m = 1, n = 1, k = 1, batch = 1;
};

int64_t whole_operands(const Problem& problem);  // Extent::operands
int64_t dear_functions(const Program& program);  // Extent::functions

// Whether the sums of a pipeline's tile are finished while the matrix units multiply the next tile's first panel, where
// panels are summed up apart, and those of both, with the program's operands, fit registers.
bool runs_ahead(const TileShape& tile, const Extent& extent);

// Whose choice is a TileShape. Best first by the cost model; never empty.
std::vector<Config> configs(const Extent& extent);
std::vector<Config> every_config(const Extent& extent);  // all that are legal

// Bytes of a panel's rows, which of B's sparse ones are half of the elements, with 2 bits for each.
int64_t a_bytes(const TileShape& tile, DType dtype);
int64_t b_bytes(const TileShape& tile, DType dtype);
int64_t threads(const TileShape& tile);
int64_t works(const TileShape& tile, const Extent& extent);  // of a pipeline: tiles that the blocks of a cluster take
int64_t slabs(const TileShape& tile, DType dtype);           // pieces in which a warp's tile is staged
int64_t shared_bytes(const TileShape& tile, DType dtype);    // of the ring and of the staging, which share memory
int64_t staged_rows_begin(const TileShape& tile, DType dtype);  // of a pipeline: what warps write along rows
int64_t scales_begin(const TileShape& tile, DType dtype);       // of a pipeline: scales by blocks of K
int64_t scales_bytes(int64_t columns, bool scaled_columns);     // TileShape::scales_bytes
std::string accumulator_type(DType dtype);
size_t accumulator_size(DType dtype);
std::string tile_type(const TileShape& tile, DType dtype, Major major_a, Major major_b);

}  // namespace lathe::cuda::gemm
