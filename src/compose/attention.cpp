// SPDX-License-Identifier: Apache-2.0
#include "compose/attention.h"

#include <cmath>

#include "compose/count_up.h"

namespace lathe {
namespace {

ir::Value* masked(ir::GraphBuilder& c, ir::Value* scores, ir::Value* mask, double hidden) {
  if (!mask) return scores;
  if (mask->dtype() != DType::boolean) return c.plus(scores, c.cast(mask, scores->dtype()));
  return c.select(mask, scores, c.scalar_like(hidden, scores));
}

ir::Value* rounded(ir::GraphBuilder& c, ir::Value* weights, const Attention& how) {
  if (!how.weights_type) return weights;
  QuantizeAttrs levels;
  levels.to = *how.weights_type;
  DequantizeAttrs numbers;
  numbers.to = weights->dtype();
  ir::Value* scale = c.reshape(c.cast(how.weights_scale, weights->dtype()), Ints{});
  return c.add(numbers, {c.add(levels, {weights, scale}), scale});
}

}  // namespace

ir::Value* repeat_heads(ir::GraphBuilder& c, ir::Value* x, int64_t heads) {
  if (c.failed() || x->shape()[1] == Expr(heads)) return x;
  const int64_t copies = heads / *x->shape()[1].as_constant();
  ir::Value* repeated = c.expand(c.unsqueeze(x, {2}), c.ints({1, 1, copies, 1, 1}));
  return c.reshape(repeated, c.concat({c.shape_of(x, 0, 1), c.ints({heads}), c.shape_of(x, 2)}, 0));
}

ir::Value* visible_keys(ir::GraphBuilder& c, ir::Value* q, ir::Value* k, CausalMask mask) {
  if (mask == CausalMask::none || c.failed()) return nullptr;
  ir::Value *queries = c.shape_of(q, 2, 3), *keys = c.shape_of(k, 2, 3);
  ir::Value* last = count_up(c, queries);  // that a query sees
  if (mask == CausalMask::lower_right) last = c.plus(last, c.minus(keys, queries));
  return c.binary(ElementwiseOp::less_equal, count_up(c, keys), c.unsqueeze(last, {1}));
}

ir::Value* attention(ir::GraphBuilder& c, ir::Value* q, ir::Value* k, ir::Value* v, ir::Value* mask,
                     const Attention& how) {
  if (how.normalizes && !how.weights_type) {
    AttentionAttrs attributes;
    std::vector<ir::Value*> operands = {q, k, v};
    if (mask) operands.push_back(mask);
    return c.add(attributes, std::move(operands));
  }
  if (!c.failed() && q->shape()[1] != k->shape()[1]) {
    const int64_t heads = *q->shape()[1].as_constant();
    k = repeat_heads(c, k, heads), v = repeat_heads(c, v, heads);
  }
  ir::Value* scores = masked(c, c.matmul(q, k, {.b = true}), mask, how.normalizes ? -HUGE_VAL : 0);
  return c.matmul(rounded(c, how.normalizes ? c.softmax(scores, -1) : scores, how), v);
}

}  // namespace lathe
