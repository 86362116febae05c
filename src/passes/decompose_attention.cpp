// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/attention_inputs.h"
#include "ops/seen_keys_of.h"
#include "passes/attention_shapes.h"
#include "passes/decompose.h"

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

using attention_input::kDistances, attention_input::kK, attention_input::kMask, attention_input::kQ,
    attention_input::kSinks, attention_input::kV;

// x with other heads: [batch, heads, rows, the last dimension], as many rows as that leaves.
Value* with_heads(Rewrite& r, Value* x, int64_t heads) {
  return r.reshape(x, r.concat({r.shape_of(x, 0, 1), r.ints({heads, -1}), r.shape_of(x, 3, 4)}, 0));
}

// The scores [..., queries, keys] of the keys that queries see by their places, -inf of others. The last query is the
// last key's.
Value* seen(Rewrite& r, Value* scores) {
  const auto& attrs = r.node->attrs<AttentionAttrs>();
  if (seen_keys_of(attrs).is_all()) return scores;
  Value* queries = length_of(r, r.input(kQ));
  Value* keys = length_of(r, r.input(kK));
  Value* zero = r.integer_scalar(0);
  Value* one = r.integer_scalar(1);
  Value* first = r.minus(keys, queries);
  Value* columns = r.add(RangeAttrs(), {zero, keys, one});
  Value* own = r.reshape(r.add(RangeAttrs(), {first, keys, one}), {-1, 1});
  Value* hidden = attrs.causal ? r.binary(Op::less, own, columns) : nullptr;
  if (attrs.window > 0) {
    Value* distance = r.minus(own, columns);
    if (!attrs.causal) distance = r.unary(UnaryOp::abs, distance);
    Value* far = r.binary(Op::greater_equal, distance, r.integer_scalar(attrs.window));
    hidden = hidden ? r.binary(Op::logical_or, hidden, far) : far;
  }
  return r.select(hidden, r.scalar_like(-HUGE_VAL, scores), scores);
}

// What is added by the distance of each key from each query: element key - query + queries - 1 of a row.
Value* with_distances(Rewrite& r, Value* scores) {
  Value* distances = r.input(kDistances);
  if (!distances) return scores;
  Value* zero = r.integer_scalar(0);
  Value* one = r.integer_scalar(1);
  Value* queries = length_of(r, r.input(kQ));
  Value* query = r.reshape(r.add(RangeAttrs(), {zero, queries, one}), {-1, 1});
  Value* key = r.add(RangeAttrs(), {zero, length_of(r, r.input(kK)), one});
  Value* place = r.plus(r.minus(key, query), r.minus(queries, one));
  return r.plus(scores, r.gather(r.cast(distances, scores->dtype()), place, 1));
}

Value* masked(Rewrite& r, Value* scores) {
  Value* mask = r.input(kMask);
  if (!mask) return seen(r, scores);
  if (mask->dtype() != DType::boolean) return r.plus(seen(r, scores), r.cast(mask, scores->dtype()));
  const double hidden = r.node->attrs<AttentionAttrs>().hidden;
  return seen(r, r.select(mask, scores, r.scalar_like(hidden, scores)));
}

// Of each query the scores, and the sink of its head as that of one more key.
Value* with_sinks(Rewrite& r, Value* scores) {
  Value* sinks = r.reshape(r.cast(r.input(kSinks), scores->dtype()), {1, -1, 1, 1});
  return r.concat({scores, r.expand(sinks, r.concat({r.shape_of(scores, 0, 3), r.ints({1})}, 0))}, 3);
}

Value* weights_of(Rewrite& r, Value* scores) {
  const AttentionAttrs& attrs = r.node->attrs<AttentionAttrs>();
  scores = r.scaled(scores, attrs.scale);
  if (attrs.softcap != 0)
    scores = r.scaled(r.activation(ActivationOp::tanh, r.scaled(scores, 1 / attrs.softcap)), attrs.softcap);
  scores = masked(r, with_distances(r, scores));
  // Equal scores are weighed alike, whatever they are.
  if (attrs.mean_for_none) {
    Value* none = r.binary(Op::equal, r.reduce(ReduceOp::max, scores, {-1}), r.scalar_like(-HUGE_VAL, scores));
    scores = r.select(none, r.scalar_like(0, scores), scores);
  }
  Value* weights = r.softmax(r.input(kSinks) ? with_sinks(r, scores) : scores, -1);
  if (r.input(kSinks)) weights = r.slice(weights, 3, 0, -1);
  if (!attrs.zeros_for_nan) return weights;
  return r.select(r.unary(UnaryOp::is_nan, weights), r.scalar_like(0, weights), weights);
}

}  // namespace

// Targets for which ops are decomposed have a kernel of f32, whose mask is f32 or of booleans, and sinks and distances
// are f32. Heads of q that share a head of k and v are rows of one product.
Result<bool> decompose_attention(Rewrite& r) {
  Value *const q = r.input(kQ), *const k = r.input(kK), *const mask = r.input(kMask), *const sinks = r.input(kSinks),
               *const distances = r.input(kDistances);
  const auto is_f32 = [](const Value* x) { return x->dtype() == DType::f32; };
  if (r.node->attrs<AttentionAttrs>().factors == DType::f8e4m3fn) return false;  // weights are not rounded one by one
  if (is_f32(q) && (!mask || is_f32(mask) || mask->dtype() == DType::boolean) && (!sinks || is_f32(sinks)) &&
      (!distances || is_f32(distances)))
    return false;
  const bool is_grouped = q->shape()[1] != k->shape()[1];
  const auto heads = q->shape()[1].as_constant(), shared = k->shape()[1].as_constant();
  if (is_grouped && (!heads || !shared || *shared == 0)) return false;
  const auto grouped = [&](Value* x, const std::optional<int64_t>& count) {
    return is_grouped ? with_heads(r, x, *count) : x;
  };
  Value* scores = grouped(r.matmul(grouped(q, shared), k, {.b = true}), heads);
  Value* weights = grouped(weights_of(r, scores), shared);
  return r.finish(grouped(r.matmul(weights, r.input(kV)), heads));
}

}  // namespace lathe
