// SPDX-License-Identifier: Apache-2.0
#include "passes/reshape_target.h"

#include <algorithm>
#include <utility>

namespace lathe {

std::optional<Ints> reshape_target(const Shape& from, const Shape& to) {
  Ints target;
  bool inferred = false;
  const bool empty = std::find(to.begin(), to.end(), Expr(0)) != to.end();
  for (size_t i = 0; i < to.size(); ++i) {
    const bool stays = i < from.size() && from[i] == to[i];
    const std::optional<int64_t> number = to[i].as_constant();
    if (number && (*number != 0 || stays)) {
      target.push_back(*number);
    } else if (stays) {
      target.push_back(0);
    } else if (!number && !inferred && !empty) {
      inferred = true;
      target.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  return target;
}

namespace {

// A list of that size alone, which an input of the network or x has; null = neither has. Not x where it can be helped:
// what only one other reads may be fused with that.
ir::Value* dim_list(Rewrite& r, const Expr& size, ir::Value* x) {
  std::vector<ir::Value*> values = r.graph().inputs();
  values.push_back(x);
  for (ir::Value* value : values) {
    const auto same = std::find(value->shape().begin(), value->shape().end(), size) - value->shape().begin();
    if (same < value->rank()) return r.shape_of(value, same, same + 1);
  }
  return nullptr;
}

}  // namespace

ir::Value* reshaped(Rewrite& r, ir::Value* x, const Shape& to) {
  if (x->shape() == to) return x;
  if (const std::optional<Ints> target = reshape_target(x->shape(), to)) return r.reshape(x, *target);
  if (std::ranges::find(to, Expr(0)) != to.end()) return nullptr;  // 0 stands for the input's
  std::vector<ir::Value*> dims;
  bool is_inferred = false;
  for (const Expr& dim : to) {
    if (const auto number = dim.as_constant())
      dims.push_back(r.ints({*number}));
    else if (ir::Value* size = dim_list(r, dim, x))
      dims.push_back(size);
    else if (!std::exchange(is_inferred, true))
      dims.push_back(r.ints({-1}));
    else
      return nullptr;
  }
  return r.reshape(x, r.concat(std::move(dims), 0));
}

}  // namespace lathe
