// SPDX-License-Identifier: Apache-2.0
// What kernels of products have in common, however they read B.
#pragma once

#include <optional>

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"

namespace lathe::cuda::gemm {

// A reason in words when tiles cannot compute the problem, or cannot compute what its program before A says.
std::optional<std::string> describe_product(const Problem& problem, Product& out);

Ending ending_of(const Product& product, DType dtype);
DenseOperand dense_operand(Source& source, const Product& product, bool first);
// The text that declares the loader of A, which is input 0 of the emission; of one with several strides, A itself, too.
std::string load_left(Source& source, const Problem& problem, const Product& product, const TileShape& tile,
                      Emission& emission);

}  // namespace lathe::cuda::gemm
