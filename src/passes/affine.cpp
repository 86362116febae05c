// SPDX-License-Identifier: Apache-2.0
#include "passes/affine.h"

#include <algorithm>

#include "ops/rules.h"
#include "passes/attention_shapes.h"
#include "passes/match.h"

namespace lathe {

bool is_matrix(const Shape& shape) { return shape.size() >= 2 && std::all_of(shape.begin(), shape.end() - 2, is_one); }

std::optional<Expr> known_integer(const ir::Value* value) {
  if (!value || (value->rank() > 0 && volume(value->shape()) != Expr(1))) return std::nullopt;
  if (value->constant() && !is_floating(value->dtype())) return Expr(value->constant()->at(0));
  return value->elements() && value->elements()->size() == 1 ? std::optional(value->elements()->front()) : std::nullopt;
}

namespace {

using ir::Node;
using ir::Value;
using Op = ElementwiseOp;

constexpr int kMostSteps = 16;

std::optional<Affine> affine_of(const Value* value, int depth);

// The dimensions of more than one element keep their order.
std::optional<Affine> affine_of_view(const Value* value, const Affine& inner, const Value* of) {
  Affine result{inner.first, std::vector<int64_t>(value->shape().size(), 0)};
  size_t at = 0;
  for (size_t i = 0; i < inner.steps.size(); ++i) {
    if (is_one(of->shape()[i])) continue;
    while (at < result.steps.size() && is_one(value->shape()[at])) ++at;
    if (at == result.steps.size() || value->shape()[at] != of->shape()[i]) return std::nullopt;
    result.steps[at++] = inner.steps[i];
  }
  while (at < result.steps.size() && is_one(value->shape()[at])) ++at;
  return at == result.steps.size() ? std::optional(result) : std::nullopt;
}

// The value at broadcast dimensions: those that it lacks, or has one element of, do not change it.
Affine broadcast(const Affine& affine, const Shape& from, const Shape& to) {
  Affine result{affine.first, std::vector<int64_t>(to.size(), 0)};
  for (size_t i = 0; i < from.size(); ++i)
    if (!is_one(from[i])) result.steps[to.size() - from.size() + i] = affine.steps[i];
  return result;
}

// a + sign * b at the dimensions of `to`.
std::optional<Affine> combined(const Value* a, const Value* b, int64_t sign, const Shape& to, int depth) {
  const std::optional<Affine> left = affine_of(a, depth), right = affine_of(b, depth);
  if (!left || !right) return std::nullopt;
  Affine sum = broadcast(*left, a->shape(), to);
  const Affine other = broadcast(*right, b->shape(), to);
  sum.first = sum.first + Expr(sign) * other.first;
  for (size_t i = 0; i < to.size(); ++i) sum.steps[i] += sign * other.steps[i];
  return sum;
}

// Whether the elements are 0, 1, 2... in order: a range, or a running sum of ones before each.
bool counts_elements(const Value* value) {
  const Node* node = value->producer();
  if (!node || !is_integer(value->dtype()) || size_of(value->dtype()) < 4) return false;  // narrow ones wrap
  if (node->has_trait(kView) || node->is(OpKind::cast)) return counts_elements(node->input(0));
  if (node->is(OpKind::range))
    return known_integer(node->input(0)) == Expr(0) && known_integer(node->input(2)) == Expr(1);
  if (!node->is(OpKind::cumulative) || value->rank() != 1) return false;
  const auto& attrs = node->attrs<CumulativeAttrs>();
  return attrs.op == CumulativeOp::sum && attrs.exclusive && !attrs.reverse && splat_of(node->input(0)) == 1.0;
}

// The row or the column of each element of a matrix, by its number and the number of columns.
std::optional<Affine> affine_of_place(const Node& node) {
  const Value *number = node.input(0), *result = node.output();
  const bool is_whole = is_matrix(result->shape()) && same_shape(number, result);
  if (!is_whole || known_integer(node.input(1)) != result->shape().back() || !counts_elements(number))
    return std::nullopt;
  Affine place{0, std::vector<int64_t>(result->shape().size(), 0)};
  place.steps[place.steps.size() - (is(&node, Op::div) ? 2 : 1)] = 1;
  return place;
}

// Constants along one dimension, as counted indices of a known size are.
std::optional<Affine> affine_of_constant(const Tensor& constant) {
  constexpr int64_t kMost = 1 << 20;
  const Dims& dims = constant.dims();
  const auto along = std::find_if(dims.begin(), dims.end(), [](int64_t dim) { return dim != 1; });
  if (!is_integer(constant.dtype()) || along == dims.end() || *along < 2 || *along != constant.volume() ||
      constant.volume() > kMost)
    return std::nullopt;
  const int64_t first = constant.at(0), step = constant.at(1) - first;
  for (int64_t i = 2; i < constant.volume(); ++i)
    if (constant.at(i) != first + i * step) return std::nullopt;
  Affine affine{first, std::vector<int64_t>(dims.size(), 0)};
  affine.steps[static_cast<size_t>(along - dims.begin())] = step;
  return affine;
}

std::optional<Affine> affine_of(const Value* value, int depth) {
  if (const std::optional<Expr> number = known_integer(value))
    return Affine{*number, std::vector<int64_t>(value->shape().size(), 0)};
  if (value->constant()) return affine_of_constant(*value->constant());
  const Node* node = value->producer();
  if (!node || depth == 0) return std::nullopt;
  if (node->is(OpKind::range)) {
    const std::optional<Expr> first = known_integer(node->input(0)), step = known_integer(node->input(2));
    if (!first || !step || !step->is_constant()) return std::nullopt;
    return Affine{*first, {*step->as_constant()}};
  }
  const bool is_signed = value->dtype() == DType::i32 || value->dtype() == DType::i64;
  if (is(node, Op::add) && size_of(value->dtype()) >= 4)
    return combined(node->input(0), node->input(1), 1, value->shape(), depth - 1);
  if (is(node, Op::sub) && is_signed)  // others wrap where they would be negative
    return combined(node->input(0), node->input(1), -1, value->shape(), depth - 1);
  if (is(node, Op::div) || is(node, Op::mod)) return affine_of_place(*node);
  const bool is_integer_cast = node->is(OpKind::cast) && is_signed;
  if (!is_integer_cast && !node->has_trait(kView) && !node->is(OpKind::expand)) return std::nullopt;
  const Value* input = node->input(0);
  const std::optional<Affine> inner = is_integer(input->dtype()) ? affine_of(input, depth - 1) : std::nullopt;
  if (!inner) return std::nullopt;
  return node->has_trait(kView) ? affine_of_view(value, *inner, input)
                                : broadcast(*inner, input->shape(), value->shape());
}

}  // namespace

std::optional<Affine> affine_of(const Value* value) { return affine_of(value, kMostSteps); }

std::optional<Affine> affine_difference(const Value* a, const Value* b, const Shape& to) {
  return combined(a, b, -1, to, kMostSteps);
}

}  // namespace lathe
