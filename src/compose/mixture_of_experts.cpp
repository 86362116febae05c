// SPDX-License-Identifier: Apache-2.0
#include "compose/mixture_of_experts.h"

namespace lathe {
namespace {

// The experts of rows: `chosen` as they are, and `numbers`, where those that are no expert's are 0.
struct Choices {
  ir::Value *chosen, *numbers;
};

ir::Value* linear(ir::GraphBuilder& c, ir::Value* x, ir::Value* weights, ir::Value* bias, const Choices& choices,
                  bool transposed) {
  ir::Value* y = c.expert_matmul(x, weights, choices.chosen, {.transposed = transposed});
  return bias ? c.plus(y, c.gather(bias, choices.numbers, 0)) : y;
}

// A number where it is known: weights that products alone read may stay packed.
ir::Value* number_of(ir::GraphBuilder& c, ir::Value* weights) {
  const std::optional<int64_t> count = weights->rank() > 0 ? weights->shape()[0].as_constant() : std::nullopt;
  return count ? c.integer_scalar(*count) : c.squeeze(c.shape_of(weights, 0, 1), {0});
}

}  // namespace

ir::Value* mixture_of_experts(ir::GraphBuilder& c, ir::Value* x, ir::Value* chosen, ir::Value* scores,
                              const Experts& experts) {
  chosen = c.cast(chosen, DType::i64);
  ir::Value* count = number_of(c, experts.down);
  ir::Value* is_expert = c.binary(ElementwiseOp::logical_and, c.binary(ElementwiseOp::greater_equal, chosen, 0.0),
                                  c.binary(ElementwiseOp::less, chosen, count));
  const Choices choices{chosen, c.select(is_expert, chosen, c.integer_scalar(0))};
  ir::Value* rows = c.unsqueeze(x, {-2});  // one for all choices
  ir::Value* gate = linear(c, rows, experts.gate, experts.gate_bias, choices, experts.transposed);
  ir::Value* up = experts.up ? linear(c, rows, experts.up, experts.up_bias, choices, experts.transposed) : nullptr;
  ir::Value* made = linear(c, experts.combine(gate, up, choices.numbers), experts.down, experts.down_bias, choices,
                           experts.transposed);
  ir::Value* weights = c.select(is_expert, scores, c.scalar_like(0, scores));
  return c.reduce(ReduceOp::sum, c.mul(made, c.unsqueeze(weights, {-1})), {-2}, false);
}

}  // namespace lathe
