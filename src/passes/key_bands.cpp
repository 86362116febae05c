// SPDX-License-Identifier: Apache-2.0
#include "passes/key_bands.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"
#include "passes/affine.h"
#include "passes/match.h"
#include "passes/weights_math.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Op = ElementwiseOp;

// The matrix that a view, a repetition along leading dimensions, or a cast reads; null where the value is
// something else.
const Value* matrix_behind(const Value* value) {
  const Node* node = value->producer();
  if (!node || !(node->has_trait(kView) || node->is(OpKind::expand) || node->is(OpKind::cast))) return nullptr;
  const Value* matrix = node->input(0);
  if (node->is(OpKind::cast)) return matrix;
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

// Where x is at most 0, if x grows by one along one of the last two dimensions and falls along the other, or is that
// everywhere.
std::optional<Band> band_up_to_zero(const Affine& x, const std::vector<Range>& ranges) {
  const bool never_grows = std::all_of(x.steps.begin(), x.steps.end(), [](int64_t step) { return step <= 0; });
  if (never_grows && x.first.range(ranges).max <= 0) return Band{};
  if (x.steps.size() < 2 || std::any_of(x.steps.begin(), x.steps.end() - 2, [](int64_t step) { return step != 0; }))
    return std::nullopt;
  const auto [row, column] = std::pair(*(x.steps.end() - 2), x.steps.back());
  if (row == -1 && column == 1) return Band{std::nullopt, Expr(-1) * x.first};
  if (row == 1 && column == -1) return Band{x.first, std::nullopt};
  return std::nullopt;
}

Affine negated(Affine x) {
  x.first = Expr(-1) * x.first;
  for (int64_t& step : x.steps) step = -step;
  return x;
}

// Where a distance |x| is less than a number that is known.
std::optional<Band> band_of_distance(const Value* distance, const Value* limit, bool or_equal,
                                     const std::vector<Range>& ranges) {
  const Node* node = made_by(distance, UnaryOp::abs);
  const std::optional<Expr> most = known_integer(limit);
  std::optional<Affine> x = node && most ? affine_of(node->input(0)) : std::nullopt;
  if (!x) return std::nullopt;
  Affine other = negated(*x);
  for (Affine* side : {&*x, &other}) side->first = side->first - *most + Expr(or_equal ? 0 : 1);
  const std::optional<Band> a = band_up_to_zero(*x, ranges), b = band_up_to_zero(other, ranges);
  return a && b ? common(*a, *b) : std::nullopt;
}

std::optional<Band> band_of_comparison(const Node& node, bool is_negated, const std::vector<Range>& ranges) {
  const Op op = node.attrs<ElementwiseAttrs>().op;
  const Value *less = node.input(0), *more = node.input(1);
  if (!is_integer(less->dtype())) return std::nullopt;
  if ((op == Op::greater || op == Op::greater_equal) != is_negated) std::swap(less, more);
  const bool or_equal = (op == Op::less_equal || op == Op::greater_equal) != is_negated;
  if (std::optional<Band> band = band_of_distance(less, more, or_equal, ranges)) return band;
  std::optional<Affine> difference = affine_difference(less, more, node.output()->shape());
  if (!difference) return std::nullopt;
  if (!or_equal) difference->first = difference->first + Expr(1);
  return band_up_to_zero(*difference, ranges);
}

// Whether it is a matrix, in leading dimensions of 1.
bool is_one_matrix(const Tensor& tensor) {
  const Dims& dims = tensor.dims();
  return dims.size() >= 2 && tensor.volume() > 0 && tensor.volume() == dims[dims.size() - 2] * dims.back();
}

// The band of a matrix of two kinds of elements: `sees` tells those in it. An end that no row shows is none.
template <class Sees>
std::optional<Band> band_of_matrix(std::span<const double> elements, int64_t columns, const Sees& sees) {
  const auto rows = static_cast<int64_t>(elements.size()) / columns;
  int64_t last = columns - 1, first = 0;  // columns that the first row, and the last one, see
  while (last >= 0 && !sees(elements[last])) --last;
  while (first < columns && !sees(elements[(rows - 1) * columns + first])) ++first;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (sees(elements[i * columns + j]) != (j <= i + last && j >= i + first - (rows - 1))) return std::nullopt;
  Band band;
  if (first > 0) band.first = Expr(first - (rows - 1));
  if (last < columns - 1) band.last = Expr(last);
  return band;
}

// A slice of a triangle begins on another diagonal. A start below 0 would count from the end.
std::optional<Band> band_of_slice(const Node& node, bool is_negated, const std::vector<Range>& ranges) {
  const Value* x = node.input(0);
  std::optional<Band> band = band_of(x, is_negated, ranges);
  const std::vector<Expr>* starts = node.input(1)->elements();
  const std::optional<Ints> axes =
      axes_of(node.num_inputs() > 3 ? node.input(3) : nullptr, starts ? starts->size() : 0, x->rank());
  const bool has_steps = node.num_inputs() > 4 && node.input(4) && !all_equal(node.input(4), 1);
  if (!band || !starts || !axes || has_steps) return std::nullopt;
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*starts)[i].range(ranges).min < 0) return std::nullopt;
    const int64_t sign = (*axes)[i] == x->rank() - 2 ? 1 : (*axes)[i] == x->rank() - 1 ? -1 : 0;
    for (std::optional<Expr>* end : {&band->first, &band->last})
      if (*end) *end = **end + Expr(sign) * (*starts)[i];
  }
  return band;
}

// A triangle of one number among zeros: (j >= i + k) or (j <= i + k).
struct Triangle {
  double number;
  bool is_upper;
  Expr k;
  Band zeros() const { return is_upper ? Band{std::nullopt, k - Expr(1)} : Band{k + Expr(1), std::nullopt}; }
  Band numbers() const { return is_upper ? Band{k, std::nullopt} : Band{std::nullopt, k}; }
};
std::optional<Triangle> triangle_of(const Value* value) {
  const Node* node = made_by(value, OpKind::trilu);
  if (!node) return std::nullopt;
  const std::optional<double> number = splat_of(node->input(0));
  const std::optional<Expr> k = node->input(1) ? known_integer(node->input(1)) : Expr(0);
  if (!number || !k) return std::nullopt;
  return Triangle{*number, node->attrs<TriluAttrs>().upper, *k};
}

std::optional<AdditiveBand> additive_band_of(const Tensor& constant) {
  if (!is_one_matrix(constant)) return std::nullopt;
  const std::vector<double> elements = to_doubles(constant);
  const auto first = std::find_if(elements.begin(), elements.end(), [](double x) { return x != 0; });
  const double number = first == elements.end() ? 0 : *first;
  if (!std::all_of(first, elements.end(), [&](double x) { return x == 0 || x == number; })) return std::nullopt;
  const std::optional<Band> band = band_of_matrix(elements, constant.dims().back(), [](double x) { return x == 0; });
  return band ? std::optional(AdditiveBand{*band, number}) : std::nullopt;
}

// Places that are in either band. Both have no first column, so that it is the band that ends later; nullopt where it
// is not known which does.
std::optional<Band> joined(const Band& a, const Band& b, const std::vector<Range>& ranges) {
  if (a.first || b.first || !a.last || !b.last) return std::nullopt;
  const Range difference = (*a.last - *b.last).range(ranges);
  if (difference.min >= 0) return a;
  return difference.max <= 0 ? std::optional(b) : std::nullopt;
}

// A mask times a condition: 0 where either is, and the mask's number elsewhere, if that is finite.
std::optional<AdditiveBand> band_of_product(const Node& product, const std::vector<Range>& ranges) {
  for (const size_t side : {0, 1}) {
    const Node* cast = made_by(product.input(side), OpKind::cast);
    const Value* mask = product.input(1 - side);
    if (!cast || cast->input(0)->dtype() != DType::boolean || !same_shape(cast->output(), mask)) continue;
    const std::optional<AdditiveBand> numbers = additive_band_of(mask, ranges);
    const std::optional<Band> zeros =
        numbers && std::isfinite(numbers->number) ? band_of(cast->input(0), true, ranges) : std::nullopt;
    const std::optional<Band> all = zeros ? joined(numbers->band, *zeros, ranges) : std::nullopt;
    if (all) return AdditiveBand{*all, numbers->number};
  }
  return std::nullopt;
}

// One number where a condition chooses it, else 0.
std::optional<AdditiveBand> band_of_choice(const Node& choice, const std::vector<Range>& ranges) {
  for (const bool is_hidden : {true, false}) {
    const std::optional<double> number = splat_of(choice.input(is_hidden ? 1 : 2));
    if (!number || splat_of(choice.input(is_hidden ? 2 : 1)) != 0 || !same_shape(choice.input(0), choice.output()))
      continue;
    if (const std::optional<Band> zeros = band_of(choice.input(0), is_hidden, ranges))
      return AdditiveBand{*zeros, *number};
  }
  return std::nullopt;
}

// A matrix behind columns of zeros, which are of keys before. Where the first row of the matrix has fewer zeros than
// none, as of a diagonal far to the left, its band would begin within the columns of zeros.
std::optional<AdditiveBand> band_behind_zeros(const Node& concat, const std::vector<Range>& ranges) {
  const Value* result = concat.output();
  if (concat.num_inputs() != 2 || !is_last_axis(concat.attrs<ConcatAttrs>().axis, result) ||
      splat_of(concat.input(0)) != 0)
    return std::nullopt;
  std::optional<AdditiveBand> found = additive_band_of(concat.input(1), ranges);
  if (!found || found->band.first || !found->band.last || found->band.last->range(ranges).min < -1) return std::nullopt;
  found->band.last = *found->band.last + concat.input(0)->shape().back();
  return found;
}

// Of conditions that are all to be true, or all false if the band is that of the negation.
std::optional<Band> band_of_both(const Node& node, bool is_negated, const std::vector<Range>& ranges) {
  const std::optional<Band> a = band_of(node.input(0), is_negated, ranges);
  const std::optional<Band> b = a ? band_of(node.input(1), is_negated, ranges) : std::nullopt;
  return b ? common(*a, *b) : std::nullopt;
}

}  // namespace

std::optional<Band> common(const Band& a, const Band& b) {
  const auto one_of = [](const std::optional<Expr>& x, const std::optional<Expr>& y, bool largest,
                         std::optional<Expr>& to) {
    to = x ? x : y;
    if (!x || !y || *x == *y) return true;
    const std::optional<int64_t> difference = (*x - *y).as_constant();
    if (difference) to = (*difference > 0) == largest ? x : y;
    return difference.has_value();
  };
  Band both;
  return one_of(a.first, b.first, true, both.first) && one_of(a.last, b.last, false, both.last) ? std::optional(both)
                                                                                                : std::nullopt;
}

std::optional<Band> band_of(const Value* condition, bool is_negated, const std::vector<Range>& ranges) {
  const Node* node = condition->producer();
  if (const Tensor* constant = condition->constant()) {
    if (!is_one_matrix(*constant)) return std::nullopt;
    return band_of_matrix(to_doubles(*constant), constant->dims().back(),
                          [&](double x) { return (x != 0) != is_negated; });
  }
  if (!node) return std::nullopt;
  if (is(node, UnaryOp::logical_not)) return band_of(node->input(0), !is_negated, ranges);
  if (is(node, Op::equal) && scalar_of(node->input(1)) == 0) return band_of(node->input(0), !is_negated, ranges);
  if (is(node, Op::less) || is(node, Op::less_equal) || is(node, Op::greater) || is(node, Op::greater_equal))
    return band_of_comparison(*node, is_negated, ranges);
  if (is(node, is_negated ? Op::logical_or : Op::logical_and)) return band_of_both(*node, is_negated, ranges);
  if (node->is(OpKind::slice)) return band_of_slice(*node, is_negated, ranges);
  if (const std::optional<Triangle> triangle = triangle_of(condition)) {
    if (triangle->number == 0) return std::nullopt;
    return is_negated ? triangle->zeros() : triangle->numbers();
  }
  const Value* matrix = matrix_behind(condition);
  if (matrix && keeps_truth(*node)) return band_of(matrix, is_negated, ranges);
  const std::optional<AdditiveBand> numbers = is_negated ? additive_band_of(condition, ranges) : std::nullopt;
  return numbers && numbers->number != 0 ? std::optional(numbers->band) : std::nullopt;
}

std::optional<AdditiveBand> additive_band_of(const Value* mask, const std::vector<Range>& ranges) {
  if (const Tensor* constant = mask->constant()) return additive_band_of(*constant);
  if (const std::optional<Triangle> triangle = triangle_of(mask))
    return AdditiveBand{triangle->zeros(), triangle->number};
  if (const Node* product = made_by(mask, Op::mul)) return band_of_product(*product, ranges);
  if (const Node* choice = made_by(mask, OpKind::select)) return band_of_choice(*choice, ranges);
  if (const Node* concat = made_by(mask, OpKind::concat)) return band_behind_zeros(*concat, ranges);
  const Value* matrix = matrix_behind(mask);
  std::optional<AdditiveBand> found = matrix ? additive_band_of(matrix, ranges) : std::nullopt;
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
