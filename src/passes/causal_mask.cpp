// SPDX-License-Identifier: Apache-2.0
#include "passes/causal_mask.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"
#include "passes/attention_shapes.h"
#include "passes/match.h"
#include "passes/weights_math.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Op = ElementwiseOp;

// Whether only the last two dimensions have more than one element.
bool is_matrix(const Shape& shape) { return shape.size() >= 2 && std::all_of(shape.begin(), shape.end() - 2, is_one); }

// The matrix that a view, a repetition along leading dimensions or a cast reads; null where the value is something
// else.
const Value* matrix_behind(const Value* value) {
  const Node* node = value->producer();
  if (!node || !(node->has_trait(kView) || node->is(OpKind::expand) || node->is(OpKind::cast))) return nullptr;
  const Value* matrix = node->input(0);
  const bool is_kept = is_matrix(matrix->shape()) && value->rank() >= 2 &&
                       std::equal(matrix->shape().end() - 2, matrix->shape().end(), value->shape().end() - 2);
  return is_kept ? matrix : nullptr;
}

// Casts of numbers may make zeros of others: of 0.5 as an integer, of 256 in 8 bits.
bool keeps_truth(const Node& node) {
  if (!node.is(OpKind::cast)) return true;
  const DType from = node.input(0)->dtype(), to = node.output()->dtype();
  return from == DType::boolean || to == DType::boolean ||
         (is_integer(from) && is_integer(to) && size_of(to) >= size_of(from));
}

// An integer that is known by the sizes.
std::optional<Expr> known_integer(const Value* value) {
  if (!value || (value->rank() > 0 && volume(value->shape()) != Expr(1))) return std::nullopt;
  if (value->constant() && !is_floating(value->dtype())) return Expr(value->constant()->at(0));
  return value->elements() && value->elements()->size() == 1 ? std::optional(value->elements()->front()) : std::nullopt;
}

// Integers that grow evenly along each dimension of a value.
struct Affine {
  Expr first;
  std::vector<int64_t> steps;
};

std::optional<Affine> affine_of(const Value* value, int depth = 16);

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

std::optional<Affine> affine_of(const Value* value, int depth) {
  if (const std::optional<Expr> number = known_integer(value))
    return Affine{*number, std::vector<int64_t>(value->shape().size(), 0)};
  const Node* node = value->producer();
  if (!node || depth == 0) return std::nullopt;
  if (node->is(OpKind::range)) {
    const std::optional<Expr> first = known_integer(node->input(0)), step = known_integer(node->input(2));
    if (!first || !step || !step->is_constant()) return std::nullopt;
    return Affine{*first, {*step->as_constant()}};
  }
  if (is(node, Op::add)) return combined(node->input(0), node->input(1), 1, value->shape(), depth - 1);
  if (is(node, Op::sub)) return combined(node->input(0), node->input(1), -1, value->shape(), depth - 1);
  if (is(node, Op::div) || is(node, Op::mod)) return affine_of_place(*node);
  const bool is_integer_cast = node->is(OpKind::cast) && size_of(value->dtype()) >= 4 && is_integer(value->dtype());
  if (!is_integer_cast && !node->has_trait(kView) && !node->is(OpKind::expand)) return std::nullopt;
  const Value* input = node->input(0);
  const std::optional<Affine> inner = is_integer(input->dtype()) ? affine_of(input, depth - 1) : std::nullopt;
  if (!inner) return std::nullopt;
  return node->has_trait(kView) ? affine_of_view(value, *inner, input)
                                : broadcast(*inner, input->shape(), value->shape());
}

// Of a comparison (a op b), each side growing by one along one of the last two dimensions.
std::optional<Expr> diagonal_of_comparison(const Node& node, bool is_negated) {
  Op op = node.attrs<ElementwiseAttrs>().op;
  if (is_negated)
    op = op == Op::less         ? Op::greater_equal
         : op == Op::less_equal ? Op::greater
         : op == Op::greater    ? Op::less_equal
                                : Op::less;
  if (!is_integer(node.input(0)->dtype()) || node.output()->rank() < 2) return std::nullopt;
  const std::optional<Affine> difference = combined(node.input(0), node.input(1), -1, node.output()->shape(), 16);
  if (!difference) return std::nullopt;
  const auto [queries, keys] = std::pair(*(difference->steps.end() - 2), difference->steps.back());
  const bool is_less = op == Op::less || op == Op::less_equal;
  const bool is_alone =
      std::all_of(difference->steps.begin(), difference->steps.end() - 2, [](int64_t step) { return step == 0; });
  if (!is_alone || queries != (is_less ? -1 : 1) || keys != -queries) return std::nullopt;
  const Expr diagonal = is_less ? Expr(-1) * difference->first : difference->first;
  return op == Op::less || op == Op::greater ? diagonal - Expr(1) : diagonal;
}

// Whether it is a matrix, in leading dimensions of 1.
bool is_matrix(const Tensor& tensor) {
  const Dims& dims = tensor.dims();
  return dims.size() >= 2 && tensor.volume() > 0 && tensor.volume() == dims[dims.size() - 2] * dims.back();
}

// The diagonal offset of a matrix of two kinds of elements: `sees` tells those on and below the diagonal.
template <class Sees>
std::optional<Expr> diagonal_of_matrix(std::span<const double> elements, int64_t columns, const Sees& sees) {
  const auto rows = static_cast<int64_t>(elements.size()) / columns;
  int64_t diagonal = -1;  // the last column that the first row sees
  while (diagonal + 1 < columns && sees(elements[diagonal + 1])) ++diagonal;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t last = std::min(columns - 1, i + diagonal);
    for (int64_t j = 0; j < columns; ++j)
      if (sees(elements[i * columns + j]) != (j <= last)) return std::nullopt;
  }
  return Expr(diagonal);
}

// A slice of a triangle begins on another diagonal. A start below 0 would count from the end.
std::optional<Expr> diagonal_of_slice(const Node& node, bool is_negated, const std::vector<Range>& ranges) {
  const Value* x = node.input(0);
  const std::optional<Expr> inner = diagonal_of(x, is_negated, ranges);
  const std::vector<Expr>* starts = node.input(1)->elements();
  const std::optional<Ints> axes =
      axes_of(node.num_inputs() > 3 ? node.input(3) : nullptr, starts ? starts->size() : 0, x->rank());
  const bool has_steps = node.num_inputs() > 4 && node.input(4) && !all_equal(node.input(4), 1);
  if (!inner || !starts || !axes || has_steps) return std::nullopt;
  Expr diagonal = *inner;
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*starts)[i].range(ranges).min < 0) return std::nullopt;
    if ((*axes)[i] == x->rank() - 2) diagonal = diagonal + (*starts)[i];
    if ((*axes)[i] == x->rank() - 1) diagonal = diagonal - (*starts)[i];
  }
  return diagonal;
}

// A triangle of one number among zeros: (j >= i + k) or (j <= i + k).
struct Triangle {
  double number;
  bool is_upper;
  Expr k;
};
std::optional<Triangle> triangle_of(const Value* value) {
  const Node* node = made_by(value, OpKind::trilu);
  if (!node) return std::nullopt;
  const std::optional<double> number = splat_of(node->input(0));
  const std::optional<Expr> k = node->input(1) ? known_integer(node->input(1)) : Expr(0);
  if (!number || !k) return std::nullopt;
  return Triangle{*number, node->attrs<TriluAttrs>().upper, *k};
}

std::optional<AdditiveTriangle> additive_triangle_of(const Tensor& constant) {
  if (!is_matrix(constant)) return std::nullopt;
  const std::vector<double> elements = to_doubles(constant);
  const auto first = std::find_if(elements.begin(), elements.end(), [](double x) { return x != 0; });
  const double number = first == elements.end() ? 0 : *first;
  if (!std::all_of(first, elements.end(), [&](double x) { return x == 0 || x == number; })) return std::nullopt;
  const std::optional<Expr> d = diagonal_of_matrix(elements, constant.dims().back(), [](double x) { return x == 0; });
  return d ? std::optional(AdditiveTriangle{*d, number}) : std::nullopt;
}

}  // namespace

std::optional<Expr> diagonal_of(const Value* condition, bool is_negated, const std::vector<Range>& ranges) {
  const Node* node = condition->producer();
  if (const Tensor* constant = condition->constant()) {
    if (!is_matrix(*constant)) return std::nullopt;
    return diagonal_of_matrix(to_doubles(*constant), constant->dims().back(),
                              [&](double x) { return (x != 0) != is_negated; });
  }
  if (!node) return std::nullopt;
  if (is(node, UnaryOp::logical_not)) return diagonal_of(node->input(0), !is_negated, ranges);
  if (is(node, Op::equal) && scalar_of(node->input(1)) == 0) return diagonal_of(node->input(0), !is_negated, ranges);
  if (is(node, Op::less) || is(node, Op::less_equal) || is(node, Op::greater) || is(node, Op::greater_equal))
    return diagonal_of_comparison(*node, is_negated);
  if (node->is(OpKind::slice)) return diagonal_of_slice(*node, is_negated, ranges);
  if (const std::optional<Triangle> triangle = triangle_of(condition)) {
    if (triangle->number == 0 || triangle->is_upper != is_negated) return std::nullopt;
    return is_negated ? triangle->k - Expr(1) : triangle->k;
  }
  const Value* matrix = matrix_behind(condition);
  return matrix && keeps_truth(*node) ? diagonal_of(matrix, is_negated, ranges) : std::nullopt;
}

std::optional<AdditiveTriangle> additive_triangle_of(const Value* mask) {
  if (const Tensor* constant = mask->constant()) return additive_triangle_of(*constant);
  if (const std::optional<Triangle> triangle = triangle_of(mask); triangle && triangle->is_upper)
    return AdditiveTriangle{triangle->k - Expr(1), triangle->number};
  const Value* matrix = matrix_behind(mask);
  std::optional<AdditiveTriangle> found = matrix ? additive_triangle_of(matrix) : std::nullopt;
  if (found) found->number = rounded_to(mask->dtype(), found->number);
  return found;
}

std::optional<LaterKeys> later_keys_of(const Value* mask, int64_t diagonal, double low,
                                       const std::function<double(double)>& number_of) {
  const Tensor* constant = mask->constant();
  if (!constant || mask->rank() < 2 || constant->volume() == 0) return std::nullopt;
  const std::vector<double> elements = to_doubles(*constant);
  const int64_t columns = constant->dims().back(), rows = constant->dims()[constant->dims().size() - 2];
  LaterKeys found{-HUGE_VAL, 0, true};
  for (int64_t row = 0; row < std::ssize(elements) / columns; ++row) {
    double nearest = HUGE_VAL;
    for (int64_t j = 0; j < columns; ++j) {
      const double number = number_of(elements[row * columns + j]);
      if (j > row % rows + diagonal) {
        if (!(number <= low)) return std::nullopt;
        found.number = std::max(found.number, number);
      } else {
        nearest = std::min(nearest, std::fabs(number));
        found.is_triangle = found.is_triangle && number == 0;
      }
    }
    found.nearest = std::max(found.nearest, nearest);
  }
  return found;
}

}  // namespace lathe
