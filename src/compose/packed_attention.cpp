// SPDX-License-Identifier: Apache-2.0
// All sequences are laid into one, in which a query sees the keys of its own sequence only.
#include "compose/packed_attention.h"

#include "compose/count_up.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

ir::Value* number_of(ir::GraphBuilder& c, ir::Value* x, int64_t axis) { return c.shape_of(x, axis, axis + 1); }

// As one sequence: [1, heads, all tokens, size].
ir::Value* laid_out(ir::GraphBuilder& c, ir::Value* x, bool packed) {
  if (packed) return c.unsqueeze(c.transpose(x, {1, 0, 2}), {0});
  ir::Value* flat =
      c.concat({c.ints({1}), number_of(c, x, 1), c.mul(number_of(c, x, 0), number_of(c, x, 2)), number_of(c, x, 3)}, 0);
  return c.reshape(c.transpose(x, {1, 0, 2, 3}), flat, true);
}

// Of tokens that are laid out: which sequence each belongs to, and its place there.
class Tokens {
 public:
  Tokens(ir::GraphBuilder& c, const TokenSource& source) : c_(c) {
    if (!source.starts) {
      length_ = number_of(c, source.tokens, 2);
      ir::Value* places = count_up(c, c.mul(number_of(c, source.tokens, 0), length_));
      sequences_ = c.divide(places, length_);
      positions_ = c.minus(places, c.mul(sequences_, length_));
      return;
    }
    starts_ = c.cast(source.starts, DType::i64);
    ir::Value* places = count_up(c, number_of(c, source.tokens, 0));
    ir::Value* begun = c.binary(Op::less_equal, c.unsqueeze(starts_, {0}), c.unsqueeze(places, {1}));
    ir::Value* count = c.squeeze(c.reduce(ReduceOp::sum, c.cast(begun, DType::i64), {1}), {1});
    sequences_ = c.minus(count, c.integer_scalar(1));
    positions_ = c.minus(places, c.gather(starts_, sequences_, 0));
    last_ = c.minus(number_of(c, source.starts, 0), c.ints({1}));
  }

  ir::Value* sequences() const { return sequences_; }
  ir::Value* positions() const { return positions_; }
  // Which tokens are of a sequence; null = all.
  ir::Value* counted() const { return last_ ? c_.binary(Op::less, sequences_, last_) : nullptr; }
  // How many tokens each of these sequences has.
  ir::Value* lengths_of(ir::Value* sequences) const {
    if (!last_) return length_;
    ir::Value* next = c_.binary(Op::min, c_.plus(sequences, c_.integer_scalar(1)), last_);
    return c_.minus(c_.gather(starts_, next, 0), c_.gather(starts_, sequences, 0));
  }

 private:
  ir::GraphBuilder& c_;
  ir::Value *sequences_ = nullptr, *positions_ = nullptr, *length_ = nullptr, *starts_ = nullptr, *last_ = nullptr;
};

ir::Value* visible_tokens(ir::GraphBuilder& c, const Tokens& q, const Tokens& k, CausalMask mask) {
  const auto down = [&](ir::Value* x) { return c.unsqueeze(x, {1}); };
  ir::Value* visible = c.binary(Op::equal, down(q.sequences()), k.sequences());
  const auto restrict = [&](ir::Value* to) { visible = c.binary(Op::logical_and, visible, to); };
  if (ir::Value* counted = k.counted()) restrict(counted);
  if (mask == CausalMask::none) return visible;
  ir::Value* last = q.positions();
  if (mask == CausalMask::lower_right)
    last = c.plus(last, c.minus(k.lengths_of(q.sequences()), q.lengths_of(q.sequences())));
  restrict(c.binary(Op::less_equal, k.positions(), down(last)));
  return visible;
}

}  // namespace

ir::Value* packed_positions(ir::GraphBuilder& c, const TokenSource& source) {
  const Tokens tokens(c, source);
  return c.select(tokens.counted(), tokens.positions(), c.integer_scalar(0));
}

ir::Value* packed_attention(ir::GraphBuilder& c, TokenSource q, TokenSource k, ir::Value* v, CausalMask mask,
                            const Attention& how) {
  const bool packs_q = q.starts != nullptr, packs_k = k.starts != nullptr;
  ir::Value* visible = visible_tokens(c, Tokens(c, q), Tokens(c, k), mask);
  ir::Value* y = attention(c, laid_out(c, q.tokens, packs_q), laid_out(c, k.tokens, packs_k), laid_out(c, v, packs_k),
                           visible, how);
  ir::Value* seen = c.reduce(ReduceOp::sum, c.cast(visible, DType::i32), {1});  // [queries, 1]
  y = c.select(c.binary(Op::greater, seen, 0.0), y, c.scalar_like(0, y));
  if (packs_q) return c.transpose(c.squeeze(y, {0}), {1, 0, 2});
  ir::Value* dims = c.concat(
      {number_of(c, q.tokens, 1), number_of(c, q.tokens, 0), number_of(c, q.tokens, 2), number_of(c, v, v->rank() - 1)},
      0);
  return c.transpose(c.reshape(y, dims, true), {1, 0, 2, 3});
}

}  // namespace lathe
