// SPDX-License-Identifier: Apache-2.0
// The text of kernels of tiles: loaders of dense operands, main loop, epilogue, and the launch that adds up splits.
#pragma once

#include <functional>
#include <string>

#include "kernels/cuda/gemm/normalized_tactic.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::gemm {

// The text that a kernel begins with: TileShape, the extents m, n and k, `block` and its `batch`.
std::string declare_product(Source& source, const TileShape& tile, std::string_view tile_type, const Expr& m,
                            const Expr& n, const Expr& k);

// An operand of the product, `outer` (M or N) by k.
struct DenseOperand {
  std::string_view loader;  // the object that the text declares: a or b
  std::string_view tensor;  // A or B
  std::string offset;       // of the batch's matrix, as text: "" or " + ..."
  Expr pitch;
  int width = 1;  // elements copied at once
  Major major = Major::k;
  Expr outer, k;
};
// The text that declares its loader and starts it; the loader's type, and what follows it in start_dense().
std::string dense_loader(Source& source, const DenseOperand& operand, const TileShape& tile);
std::string dense_loader_type(const DenseOperand& operand, const TileShape& tile);
std::string dense_loader_start(Source& source, const DenseOperand& operand);

// Elements that can be copied at once when rows and matrices begin at multiples of `strides`; 1 when that is less than
// the 4 bytes of an asynchronous copy.
int copy_width(DType dtype, std::span<const Expr> strides);

// Elements of the output that are written at once; its columns consist of `column_dims` dimensions, the
// last of which is `dimension`.
int64_t store_width(const Operand& output, int dimension, size_t column_dims);
bool stores_vectors(const Operand& output, int dimension, size_t column_dims);  // of 8 bytes at least
// Why the columns that are finished in pairs are none that sinks write.
std::optional<std::string> refuse_pairs(const Problem& problem);
// Why the columns of a collapsed result are not written where they belong.
std::optional<std::string> refuse_columns(const Operand& output);

struct Ending {
  const Problem& problem;  // its output and program
  DType dtype;             // of what is multiplied
  int dimension;           // of the output: the last of those that the product's columns are
  Expr m, n, batch;        // of each matrix; how many of them
  // Where the matrix `batch` lies in the output, as text: its rows (below those of the matrix before, unless stated)
  // and its first column.
  std::function<std::string(Source&)> rows;
  std::string column = "0L";
  std::string_view header = "gemm/gemm.cuh";     // declares what `rows` names
  bool weights_first = false;                    // B is constant
  std::string_view next_begins = "kWhenSummed";  // the next launch (gemm/main_loop.cuh)
  size_t column_dims = 1;                        // of the output's dimensions: the columns
  size_t first_operand = 2;                      // of the emission's inputs: the program's
  // Of products that are scaled by blocks of K: the type of the scales, and what declares them as `scales`.
  std::string scales_type = {};
  std::function<std::string(Source&)> scales = {};
  const ResultNormalization* normalization = nullptr;
  // Whether sums go to the workspace, for another launch: those of splits, and those of rows that are written as they
  // are normalised alone.
  bool keeps_sums(int64_t splits) const { return splits > 1 || (normalization && !normalization->beside); }
};

// Whether the output's rows begin where no vector is aligned, so that a pipeline's warps write along them
// (gemm/row_sink.cuh).
bool stores_by_rows(const Ending& ending);

// The device code's type of a tile, whose sums may be scaled.
std::string tile_type(const TileShape& tile, const Ending& ending, Major major_a, Major major_b);

// Columns of the fused output that are finished at once; 1 also where neighbouring threads take neighbouring rows.
int64_t fused_vector(const Ending& ending);

// Where the sums go: into the output, or, when K is split, to the workspace.
struct Sink {
  std::string text;
  int64_t vector;  // columns at once
  bool down;       // neighbouring threads take neighbouring rows
  bool whole;      // the columns are a multiple of the vector
};
// Into the output, through the program, which it declares.
Sink fused_sink(Source& source, const Ending& ending);
Expr partial_pitch(const Ending& ending);  // elements between rows of sums that are kept
// Bytes of the workspace that they take there, from its beginning.
Expr partial_bytes(const Ending& ending, int64_t splits);
// The text names block and batch. Declares what else it names. `splits` are those whose sums another launch adds up.
Sink declare_sink(Source& source, const Ending& ending, int64_t splits, Emission& emission);
// That launch, if there are any.
void add_reduction(const Ending& ending, int64_t splits, Emission& emission);

// `body` declares TileShape, block, batch (of the block) and the loaders a and b. Adds one launch or two to the
// emission, whose operands start at input 2.
void finish(Source& source, std::string body, const TileShape& tile, const Ending& ending, Emission& emission);

// Whether tensor cores multiply the problem's type; MN-major panels are transposed for 16-bit elements and f32 only.
bool has_tensor_core(const Problem& problem, Major major);

// What of a product's extent does not depend on its sizes.
Extent extent_of(const Problem& problem, Major major_a = Major::k, Major major_b = Major::k);

}  // namespace lathe::cuda::gemm
