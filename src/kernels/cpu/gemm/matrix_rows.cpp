// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/matrix_rows.h"

#include <algorithm>

#include "kernels/cpu/gemm/matrices.h"
#include "kernels/cpu/gemm/pairs.h"

namespace lathe::cpu::gemm {

TensorArg in_pairs(const TensorArg& a, float* to, ThreadPool& pool) {
  static const auto pair = LATHE_ISA_SELECT(pair_neighbours);
  TensorArg pairs = a;
  pairs.data = to;
  const int64_t k = a.dims[a.rank - 1], width = pairs_of(k), rows = a.dims[a.rank - 2];
  pairs.dims[a.rank - 1] = width;
  make_dense(pairs);
  const int64_t grain = std::max<int64_t>(1, kLeastCopy / std::max<int64_t>(k, 1));
  pool.parallel_for(rows * leading(a), grain, [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row)
      pair(a.as<float>() + matrix_offset(a, a, row / rows) + row % rows * a.strides[a.rank - 2], k, to + row * width,
           multiplies_bf16());
  });
  return pairs;
}

}  // namespace lathe::cpu::gemm
