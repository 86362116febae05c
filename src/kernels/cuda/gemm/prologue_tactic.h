// SPDX-License-Identifier: Apache-2.0
// Products whose left operand a program computes (Problem::prologue).
#pragma once

#include <optional>

#include "kernels/cuda/gemm/epilogue_tactic.h"

namespace lathe::cuda::gemm {

// Why loaders cannot compute input 0, whose dimension `column` runs along K.
std::optional<std::string> refuse_prologue(const Problem& problem, size_t column);

// The loader of `operand`, which is input 0: a dense one, or one that applies the prologue, whose operands become
// inputs of the emission.
std::string left_loader(Source& source, const Problem& problem, size_t column, const DenseOperand& operand,
                        const TileShape& tile, Emission& emission);

}  // namespace lathe::cuda::gemm
