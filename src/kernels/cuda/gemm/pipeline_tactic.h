// SPDX-License-Identifier: Apache-2.0
// Products whose panels the copy engine of the device brings (gemm/pipeline.cuh).
#pragma once

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"

namespace lathe::cuda::gemm {

// Whether tensor maps can describe both operands, and groups of four warps multiply and finish them.
bool can_copy(const Problem& problem, const Product& product, const Ending& ending);
// Of how many neighbouring columns a thread's sums can be (TileShape::neighbours).
int64_t neighbours(const Product& product, const Ending& ending);

// Adds one launch, or two, to the emission, whose inputs
// are A, B, and the program's operands.
void finish_pipeline(const Problem& problem, const Product& product, const TileShape& tile, const Ending& ending,
                     Emission& emission);

}  // namespace lathe::cuda::gemm
