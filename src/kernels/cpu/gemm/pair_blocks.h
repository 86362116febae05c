// SPDX-License-Identifier: Apache-2.0
// A of a product of bf16 as matrix registers take it: blocks of up to 16 rows by 16 pairs (gemm/pairs.h), each a
// kilobyte at most without gaps, so that a register's load reads neighbouring lines of the cache. Blocks of the same
// rows lie one behind the other along K. For example of 197 rows by 384 elements 13 groups of 16 rows, of 12 blocks
// each. Rows behind the last are zeros, and so are pairs behind K.
#pragma once

#include <cstdint>

#include "base/divide.h"
#include "device/cpu/kernel.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/gemm/tile.h"

namespace lathe::cpu::gemm {

struct PairBlocks {
  PairBlocks(int64_t rows, int64_t k)
      : rows(rows),
        k(k),
        groups(ceil_div<int64_t>(rows, kMatrixRegisterRows)),
        height(static_cast<int>(ceil_div(rows, groups == 0 ? 1 : groups))),
        steps(ceil_div<int64_t>(pairs_of(k), kMatrixRegisterRows)) {}

  int64_t block_floats() const { return int64_t{height} * kMatrixRegisterRows; }
  int64_t group_floats() const { return steps * block_floats(); }
  int64_t floats() const { return groups * group_floats(); }

  int64_t rows, k;  // of A
  int64_t groups;
  int height;     // rows of a group
  int64_t steps;  // blocks of a group
};

// Writes all rows of A, whose K is contiguous and which may be stacks of matrices.
void write_blocks(const PairBlocks& blocks, const TensorArg& a, float* to, ThreadPool& pool);

}  // namespace lathe::cpu::gemm
