// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_shapes.h"

#include "shape/broadcast.h"

namespace lathe {

using ir::Value;

Shape leading(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }
Shape with_rows(Shape leading, const Shape& shape) {
  leading.insert(leading.end(), shape.end() - 2, shape.end());
  return leading;
}

Shape folded(const Shape& whole) {
  Shape two = {whole[0], Expr(1)};
  for (size_t i = 1; i < whole.size(); ++i) two[1] = two[1] * whole[i];
  return two;
}

Value* length_of(Rewrite& r, Value* x) {
  const int64_t at = x->rank() - 2;
  return r.reshape(r.shape_of(x, at, at + 1), Ints{});
}

namespace {

// A list of the size that a dimension is repeated to: a number, or what it broadcasts to with a dimension of `others`.
Value* repeated_size(Rewrite& r, const Expr& have, const Expr& want, const std::vector<Value*>& others) {
  if (have == want) return r.ints({1});
  if (const auto number = want.as_constant()) return r.ints({*number});
  for (Value* other : others)
    for (int64_t d = 0; d < other->rank(); ++d)
      if (const Expr& dim = other->shape()[static_cast<size_t>(d)]; dim == want || broadcast_dim(have, dim) == want)
        return r.shape_of(other, d, d + 1);
  return nullptr;
}

}  // namespace

Value* repeated_to(Rewrite& r, Value* x, const Shape& lead, const std::vector<Value*>& others) {
  Shape have = leading(x->shape());
  while (have.size() < lead.size()) have.insert(have.begin(), Expr(1));
  if (have == lead && leading(x->shape()) == lead) return x;
  std::vector<Value*> sizes;
  for (size_t i = 0; i < lead.size(); ++i) {
    sizes.push_back(repeated_size(r, have[i], lead[i], others));
    if (!sizes.back()) return nullptr;
  }
  sizes.push_back(r.ints({1, 1}));
  Value* result = r.expand(x, r.concat(std::move(sizes), 0));
  return leading(result->shape()) == lead ? result : nullptr;
}

}  // namespace lathe
