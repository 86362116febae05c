// SPDX-License-Identifier: Apache-2.0
#include "lowering/decompose_attention.h"

#include <cmath>

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

constexpr size_t kQ = 0, kK = 1, kV = 2, kMask = 3;

Result<Value*> matmul(Rewrite& r, Value* a, Value* b, bool transpose_b) {
  MatmulAttrs attrs;
  attrs.transpose_b = transpose_b;
  return r.add(attrs, {a, b});
}

Result<Value*> scaled(Rewrite& r, Value* x, double factor) {
  if (factor == 1) return x;
  LATHE_ASSIGN(Value * by, r.scalar(x->dtype(), factor));
  return r.elementwise(Op::mul, x, by);
}

Result<Value*> length_of(Rewrite& r, Value* x) {
  LATHE_ASSIGN(Value * list, r.dims_of(x, 2, 3));
  return r.reshape(list, {});
}

// x with other heads: [batch, heads, rows, the last dimension], as many rows as that leaves.
Result<Value*> with_heads(Rewrite& r, Value* x, int64_t heads) {
  LATHE_ASSIGN(Value * batch, r.dims_of(x, 0, 1));
  LATHE_ASSIGN(Value * inner, r.ints({heads, -1}));
  LATHE_ASSIGN(Value * last, r.dims_of(x, 3, 4));
  LATHE_ASSIGN(Value * target, r.add(ConcatAttrs(), {batch, inner, last}));
  return r.add(ReshapeAttrs(), {x, target});
}

// Which keys come after their query, [queries, keys]. The last query is the last key's.
Result<Value*> later_keys(Rewrite& r) {
  LATHE_ASSIGN(Value * queries, length_of(r, r.input(kQ)));
  LATHE_ASSIGN(Value * keys, length_of(r, r.input(kK)));
  LATHE_ASSIGN(Value * zero, r.scalar(DType::i64, 0));
  LATHE_ASSIGN(Value * one, r.scalar(DType::i64, 1));
  LATHE_ASSIGN(Value * first, r.elementwise(Op::sub, keys, queries));
  LATHE_ASSIGN(Value * columns, r.add(RangeAttrs(), {zero, keys, one}));
  LATHE_ASSIGN(Value * rows, r.add(RangeAttrs(), {first, keys, one}));
  LATHE_ASSIGN(rows, r.reshape(rows, {-1, 1}));
  return r.elementwise(Op::less, rows, columns);
}

Result<Value*> masked(Rewrite& r, Value* scores) {
  LATHE_ASSIGN(Value * hidden, r.scalar(scores->dtype(), -HUGE_VAL));
  if (r.node->attrs<AttentionAttrs>().causal) {
    LATHE_ASSIGN(Value * later, later_keys(r));
    LATHE_ASSIGN(scores, r.add(SelectAttrs(), {later, hidden, scores}));
  }
  Value* mask = r.input(kMask);
  if (!mask) return scores;
  if (mask->dtype() == DType::boolean) return r.add(SelectAttrs(), {mask, scores, hidden});
  if (mask->dtype() != scores->dtype()) {
    CastAttrs cast;
    cast.to = scores->dtype();
    LATHE_ASSIGN(mask, r.add(cast, {mask}));
  }
  return r.elementwise(Op::add, scores, mask);
}

Result<Value*> weights_of(Rewrite& r, Value* scores) {
  const AttentionAttrs& attrs = r.node->attrs<AttentionAttrs>();
  LATHE_ASSIGN(scores, scaled(r, scores, attrs.scale));
  if (attrs.softcap != 0) {
    LATHE_ASSIGN(scores, scaled(r, scores, 1 / attrs.softcap));
    LATHE_ASSIGN(scores, r.activation(ActivationOp::tanh, scores));
    LATHE_ASSIGN(scores, scaled(r, scores, attrs.softcap));
  }
  LATHE_ASSIGN(scores, masked(r, scores));
  return r.add(SoftmaxAttrs(), {scores});
}

}  // namespace

// Heads of q that share a head of k and v are rows of one product.
Result<bool> decompose_attention(Rewrite& r) {
  Value *q = r.input(kQ), *const k = r.input(kK);
  const bool is_grouped = q->shape()[1] != k->shape()[1];
  const auto heads = q->shape()[1].as_constant(), shared = k->shape()[1].as_constant();
  if (is_grouped && (!heads || !shared || *shared == 0)) return false;
  const auto grouped = [&](Value* x, const std::optional<int64_t>& count) -> Result<Value*> {
    if (!is_grouped) return x;
    return with_heads(r, x, *count);
  };
  LATHE_ASSIGN(q, grouped(q, shared));
  LATHE_ASSIGN(Value * scores, matmul(r, q, k, true));
  LATHE_ASSIGN(scores, grouped(scores, heads));
  LATHE_ASSIGN(Value * weights, weights_of(r, scores));
  LATHE_ASSIGN(weights, grouped(weights, shared));
  LATHE_ASSIGN(Value * result, matmul(r, weights, r.input(kV), false));
  LATHE_ASSIGN(result, grouped(result, heads));
  return r.finish(result);
}

}  // namespace lathe
