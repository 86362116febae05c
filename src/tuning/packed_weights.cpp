// SPDX-License-Identifier: Apache-2.0
#include "tuning/packed_weights.h"

#include <algorithm>
#include <numeric>

#include "base/divide.h"

namespace lathe {

PackedWeights::PackedWeights(const Operand& operand, bool transposed, int64_t matrix)
    : levels_(operand.constant),
      transposed_(transposed),
      is_signed_(operand.dtype == DType::i4 || operand.dtype == DType::i8),
      bits_(static_cast<int>(bits_of(operand.dtype))),
      k_(levels_->dims()[levels_->dims().size() - (transposed ? 1 : 2)]),
      n_(levels_->dims()[levels_->dims().size() - (transposed ? 2 : 1)]),
      first_(matrix * k_ * n_),
      block_(k_),
      scales_(blocks_of(operand.operands[0], matrix)) {
  if (operand.operands.size() > 1) zeros_ = blocks_of(operand.operands[1], matrix);
  for (const int64_t block : {scales_.k_block, zeros_.content ? zeros_.k_block : k_})
    if (block < k_) block_ = block_ == k_ ? block : std::gcd(block_, block);
}

bool PackedWeights::has_other_zeros() const {
  if (is_weight_float(dtype())) return false;
  if (!zeros_.content) return !is_signed_;
  for (int64_t k = 0; k < k_; k += block_)
    for (int64_t n = 0; n < n_; ++n)
      if (zero(k, n) != half()) return true;
  return false;
}

PackedWeights::Blocks PackedWeights::blocks_of(const Operand& operand, int64_t matrix) const {
  const size_t rank = operand.blocks.size(), k_dim = rank - (transposed_ ? 1 : 2), n_dim = rank - (transposed_ ? 2 : 1);
  const int64_t k_block = operand.blocks[k_dim], n_block = operand.blocks[n_dim];
  // Of the blocks' matrix, of which each may serve several.
  const int64_t columns = ceil_div(transposed_ ? k_ : n_, operand.blocks[rank - 1]);
  const int64_t rows = ceil_div(transposed_ ? n_ : k_, operand.blocks[rank - 2]);
  const int64_t first = rank == 2 ? 0 : matrix / operand.blocks[0] * rows * columns;
  return {operand.constant, k_block, n_block, transposed_ ? 1 : columns, transposed_ ? columns : 1, first};
}

std::vector<PackedWeights> packed_matrices(const Operand& operand, bool transposed) {
  const Dims& dims = operand.constant->dims();
  std::vector<PackedWeights> matrices;
  for (int64_t i = 0; i < (dims.size() == 2 ? 1 : dims[0]); ++i) matrices.emplace_back(operand, transposed, i);
  return matrices;
}

}  // namespace lathe
