// SPDX-License-Identifier: Apache-2.0
// The text that follows the loaders in every kernel of tiles: main loop, epilogue, and the launch that adds up splits.
#pragma once

#include <string>

#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::gemm {

struct Ending {
  const Problem& problem;         // its output and program
  DType dtype;                    // of what is multiplied
  int dimension;                  // of the output: the product's columns
  Expr m, n, batch;               // of each matrix; how many of them
  bool batch_is_columns = false;  // the matrices lie side by side in the output (groups), not below each other
  bool weights_first = false;     // B is constant
};

// `body` declares Tile, block, batch (of the block) and the loaders a and b. Adds one launch or two to the emission,
// whose operands start at input 2.
void finish(Source& source, std::string body, const Tile& tile, const Ending& ending, Emission& emission);

// Whether tensor cores multiply the problem's type; panels across K are transposed for 16-bit elements and f32 only.
bool has_tensor_core(const Problem& problem, bool across);

}  // namespace lathe::cuda::gemm
