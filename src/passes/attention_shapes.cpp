// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_shapes.h"

#include <algorithm>
#include <utility>

#include "passes/reshape_target.h"

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

Value* repeated_to(Rewrite& r, Value* x, const Shape& lead) {
  Ints shape;
  Shape have = leading(x->shape());
  while (have.size() < lead.size()) have.insert(have.begin(), Expr(1));
  for (size_t i = 0; i < lead.size(); ++i) {
    const std::optional<int64_t> number = have[i] == lead[i] ? 1 : lead[i].as_constant();
    if (!number) return nullptr;
    shape.push_back(*number);
  }
  shape.insert(shape.end(), 2, 1);
  return r.expand(x, r.ints(shape));
}

namespace {

// A list of that size alone, which x or an input of the network has; null = neither has.
Value* dim_list(Rewrite& r, const Expr& size, Value* x) {
  std::vector<Value*> values = r.graph().inputs();
  values.insert(values.begin(), x);
  for (Value* value : values) {
    const auto same = std::find(value->shape().begin(), value->shape().end(), size) - value->shape().begin();
    if (same < value->rank()) return r.shape_of(value, same, same + 1);
  }
  return nullptr;
}

}  // namespace

Value* reshaped(Rewrite& r, Value* x, const Shape& to) {
  if (x->shape() == to) return x;
  if (const std::optional<Ints> target = reshape_target(x->shape(), to)) return r.reshape(x, *target);
  std::vector<Value*> dims;
  bool is_inferred = false;
  for (const Expr& dim : to) {
    if (const auto number = dim.as_constant())
      dims.push_back(r.ints({*number}));
    else if (Value* size = dim_list(r, dim, x))
      dims.push_back(size);
    else if (!std::exchange(is_inferred, true))
      dims.push_back(r.ints({-1}));
    else
      return nullptr;
  }
  return r.reshape(x, r.concat(std::move(dims), 0));
}

}  // namespace lathe
