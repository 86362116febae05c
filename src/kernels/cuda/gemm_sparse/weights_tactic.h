// SPDX-License-Identifier: Apache-2.0
// 2:4 sparse weights as gemm_sparse.cuh reads them.
#pragma once

#include <string>

#include "kernels/cuda/gemm/tile_tactic.h"

namespace lathe::cuda {
class Source;
}

namespace lathe::cuda::gemm {

// Why no kernel here multiplies the problem's weights as sparse ones.
std::optional<std::string> refuse_sparse(const Problem& problem);

// Rows of output channels along K, of `matrices` one behind the other.
struct SparseWeights {
  Tensor values;  // [matrices * columns][kept]: two of each four
  Tensor places;  // [matrices * blocks of 16 columns][words]: which, for each lane of the instruction
  int64_t matrices = 1;

  int64_t columns() const { return values.dims()[0] / matrices; }
  int64_t kept() const { return values.dims()[1]; }
};
// `rows`: [matrices * columns][K], K in whole vectors.
Result<SparseWeights> compress(const Tensor& rows, int64_t matrices);

// They become the emission's next packed inputs.
void add_weights(const SparseWeights& weights, Emission& emission);

// The text that declares B and their loader; they are the inputs 1 and 2 of the emission. `matrix`: the number of the
// block's one, as text.
std::string sparse_loader(Source& source, const SparseWeights& weights, const TileShape& tile, std::string_view matrix);

}  // namespace lathe::cuda::gemm
