// SPDX-License-Identifier: Apache-2.0
#include "compose/mixture_of_experts.h"

#include "compose/count_up.h"

namespace lathe {
namespace {

// [batch, tokens, size] as [1, all tokens, size].
ir::Value* in_one_batch(ir::GraphBuilder& c, ir::Value* x) {
  ir::Value* tokens = c.mul(c.shape_of(x, 0, 1), c.shape_of(x, 1, 2));
  return c.reshape(x, c.concat({c.ints({1}), tokens, c.shape_of(x, 2, 3)}, 0), true);
}

ir::Value* linear(ir::GraphBuilder& c, ir::Value* x, ir::Value* weights, ir::Value* bias) {
  ir::Value* y = c.matmul(x, weights);
  return bias ? c.plus(y, c.unsqueeze(bias, {1})) : y;
}

}  // namespace

ir::Value* mixture_of_experts(ir::GraphBuilder& c, ir::Value* x, ir::Value* chosen, ir::Value* scores,
                              const Experts& experts) {
  ir::Value* tokens = in_one_batch(c, x);
  ir::Value* inner = experts.combine(linear(c, tokens, experts.gate, experts.gate_bias),
                                     linear(c, tokens, experts.up, experts.up_bias));
  ir::Value* made = linear(c, inner, experts.down, experts.down_bias);  // [experts, tokens, hidden]
  ir::Value* numbers = c.unsqueeze(count_up(c, c.shape_of(experts.down, 0, 1)), {1, 2});
  ir::Value* is_chosen = c.binary(ElementwiseOp::equal, in_one_batch(c, c.cast(chosen, DType::i64)), numbers);
  scores = in_one_batch(c, scores);
  ir::Value* weights = c.reduce(ReduceOp::sum, c.select(is_chosen, scores, c.scalar_like(0, scores)), {2});
  ir::Value* count = c.reduce(ReduceOp::sum, c.cast(is_chosen, DType::i32), {2});
  // What an expert makes of a token that did not choose it may be infinite.
  ir::Value* counted =
      c.select(c.binary(ElementwiseOp::greater, count, 0.0), c.mul(made, weights), c.scalar_like(0, made));
  return c.reshape(c.reduce(ReduceOp::sum, counted, {0}), c.shape_of(x), true);
}

}  // namespace lathe
