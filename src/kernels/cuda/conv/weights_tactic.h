// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/epilogue_tactic.h"

namespace lathe::cuda::conv {

// Weights [O, C, taps...] as rows of taps and, innermost, `padded` channels; rows are padded to multiples of
// `row_bytes`. Zeros fill.
Result<Packed> pack_weights(const Known& weights, int64_t padded, size_t row_bytes = 16);

// The text that declares the loader of such rows, which are B: `outputs` by `k` of each matrix of the batch.
std::string weights_loader(Source& source, const Operand& packed, int64_t outputs, int64_t k,
                           const gemm::TileShape& tile);

}  // namespace lathe::cuda::conv
