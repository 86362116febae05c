// SPDX-License-Identifier: Apache-2.0
// A matmul or einsum problem as stacks of matrices: vectors became matrices, transpositions strides, and batch
// dimensions that only lengthen M are part of it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/cuda/gemm/normalized_tactic.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "tuning/problem.h"

namespace lathe::cuda {
class Source;
}

namespace lathe::cuda::gemm {

struct StridedAxis {
  Expr extent, stride;
};

struct Matrix {
  Major major = Major::k;
  Expr pitch;           // elements between rows of the contiguous dimension
  int width = 1;        // elements that may be copied at once, from every multiple of it
  Shape batch_strides;  // for each of Product::batch
  // Of a left operand with several strides: the axes that M and K are collapsed from, outermost first. Otherwise empty.
  std::vector<StridedAxis> rows, columns;
  bool has_several_strides() const { return !columns.empty(); }
};

struct Product {
  Expr m, n, k;
  Shape batch;
  Matrix a, b;
  // Of a pipeline whose left operand is no matrix: the text that declares its map and its panels' places.
  std::function<std::string(Source&, const TileShape&)> declare_a;
  bool weights = false;  // B is constant: packed K-major, rows padded to 16 bytes
  int64_t opt_k = 0;     // K under the shapes that the tuner measures
  Problem problem;       // output and operands with dimensions for the batch, M and N, in this order
  std::optional<ResultNormalization> normalization;

  // How many dimensions of the output N consists of.
  size_t column_dims() const {
    return problem.outputs[0].reassociation.empty() ? 1 : problem.outputs[0].reassociation.back();
  }
};

// A reason in words when the problem is none that tiles can compute.
std::optional<std::string> describe(const Problem& problem, Product& out);
std::optional<std::string> describe_einsum(const Problem& problem, Product& out);

// Of an operand whose matrices run `outer` (M or N) by K. False when neither is contiguous.
bool describe(const Operand& operand, const Expr& outer, const Expr& outer_stride, const Expr& k, const Expr& k_stride,
              const Shape& batch_strides, Matrix& out);

Extent extent_of(const Problem& problem, const Product& product);  // as the cost model sees it

// Where the matrix `batch` of an operand begins, as text behind its address: "" or " + ...".
std::string batch_offset(Source& source, const Product& product, const Matrix& matrix);

// Constant B of a matmul as `weights` describes it.
Result<Packed> pack_weights(const Problem& problem);

}  // namespace lathe::cuda::gemm
