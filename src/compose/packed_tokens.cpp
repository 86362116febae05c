// SPDX-License-Identifier: Apache-2.0
#include "compose/packed_tokens.h"

#include "compose/count_up.h"

namespace lathe {

using Op = ElementwiseOp;

PackedTokens::PackedTokens(ir::GraphBuilder& c, const TokenSource& source) : c_(c) {
  if (!source.starts) {
    length_ = c.shape_of(source.tokens, 2, 3);
    ir::Value* places = count_up(c, c.mul(c.shape_of(source.tokens, 0, 1), length_));
    sequences_ = c.divide(places, length_);
    positions_ = c.minus(places, c.mul(sequences_, length_));
    return;
  }
  starts_ = c.cast(source.starts, DType::i64);
  ir::Value* places = count_up(c, c.shape_of(source.tokens, 0, 1));
  ir::Value* begun = c.binary(Op::less_equal, c.unsqueeze(starts_, {0}), c.unsqueeze(places, {1}));
  ir::Value* count = c.squeeze(c.reduce(ReduceOp::sum, c.cast(begun, DType::i64), {1}), {1});
  sequences_ = c.minus(count, c.integer_scalar(1));
  positions_ = c.minus(places, c.gather(starts_, sequences_, 0));
  last_ = c.minus(c.shape_of(source.starts, 0, 1), c.ints({1}));
}

ir::Value* PackedTokens::lengths_of(ir::Value* sequences) const {
  if (!last_) return length_;
  ir::Value* next = c_.binary(Op::min, c_.plus(sequences, c_.integer_scalar(1)), last_);
  return c_.minus(c_.gather(starts_, next, 0), c_.gather(starts_, sequences, 0));
}

}  // namespace lathe
