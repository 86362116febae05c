// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/pair_blocks.h"

#include <algorithm>

#include "kernels/cpu/gemm/matrices.h"

namespace lathe::cpu::gemm {

void write_blocks(const PairBlocks& blocks, const TensorArg& a, float* to, ThreadPool& pool) {
  static const auto write_row = LATHE_ISA_SELECT(pair_neighbours_in_blocks);
  const int64_t height = blocks.height, of_matrix = a.dims[a.rank - 2];
  const int64_t grain = std::max<int64_t>(1, kLeastCopy / std::max<int64_t>(height * blocks.k, 1));
  pool.parallel_for(blocks.groups, grain, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first * height; i < last * height; ++i) {
      float* row = to + i / height * blocks.group_floats() + i % height * kMatrixRegisterRows;
      if (i < blocks.rows) {
        const int64_t offset = matrix_offset(a, a, i / of_matrix) + i % of_matrix * a.strides[a.rank - 2];
        write_row(a.as<float>() + offset, blocks.k, row, blocks.block_floats());
      } else {
        for (int64_t s = 0; s < blocks.steps; ++s)
          std::fill_n(row + s * blocks.block_floats(), kMatrixRegisterRows, 0.0f);
      }
    }
  });
}

}  // namespace lathe::cpu::gemm
