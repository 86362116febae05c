// SPDX-License-Identifier: Apache-2.0
#include "tuning/packed_weights.h"

#include <algorithm>
#include <numeric>

#include "base/divide.h"

namespace lathe {

PackedWeights::PackedWeights(const Operand& operand, bool transposed)
    : levels_(operand.constant),
      transposed_(transposed),
      is_signed_(operand.dtype == DType::i4 || operand.dtype == DType::i8),
      bits_(static_cast<int>(bits_of(operand.dtype))),
      k_(levels_->dims()[transposed ? 1 : 0]),
      n_(levels_->dims()[transposed ? 0 : 1]),
      block_(k_),
      scales_(blocks_of(operand.operands[0])) {
  if (operand.operands.size() > 1) zeros_ = blocks_of(operand.operands[1]);
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

PackedWeights::Blocks PackedWeights::blocks_of(const Operand& operand) const {
  const size_t k_dim = transposed_ ? 1 : 0, n_dim = 1 - k_dim;
  const int64_t k_block = operand.blocks[k_dim], n_block = operand.blocks[n_dim];
  const int64_t columns = ceil_div(transposed_ ? k_ : n_, operand.blocks[1]);  // of the blocks' matrix
  return {operand.constant, k_block, n_block, transposed_ ? 1 : columns, transposed_ ? columns : 1};
}

}  // namespace lathe
