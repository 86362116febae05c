// SPDX-License-Identifier: Apache-2.0
// One spelling for each thing, so that later passes look for one: constants come second, subtraction and division of
// constants become addition and multiplication, powers become products and roots.
#include <algorithm>
#include <cmath>

#include "ops/rules.h"
#include "passes/einsum_to_matmul.h"
#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

Op op_of(const Rewrite& r) { return r.node->attrs<ElementwiseAttrs>().op; }

Result<bool> constant_second(Rewrite& r) {
  if (!commutes(op_of(r)) || !r.input(0)->content() || r.input(1)->content()) return false;
  LATHE_TRY(r.graph().set_inputs(r.node, {r.input(1), r.input(0)}));
  return true;
}

Result<bool> sub_to_add(Rewrite& r) {
  if (op_of(r) != Op::sub || !r.input(1)->constant() || r.input(0)->constant()) return false;
  const Tensor& c = *r.input(1)->constant();
  LATHE_ASSIGN(Tensor negative, Tensor::allocate(c.dtype(), c.dims()));
  if (is_floating(c.dtype())) {
    std::vector<double> values = to_doubles(c);
    for (double& v : values) v = -v;
    from_doubles(values, negative);
  } else {
    std::vector<int64_t> values = to_ints(c);
    for (int64_t& v : values) v = static_cast<int64_t>(0 - static_cast<uint64_t>(v));  // wraps as subtraction does
    from_ints(values, negative);
  }
  return r.finish(r.plus(r.input(0), r.constant(std::move(negative))));
}

// Whether 1 / v loses nothing (or may), and stays a normal number.
bool has_reciprocal(double v, bool exact) {
  int exponent = 0;
  return v != 0 && std::isfinite(v) && (!exact || std::fabs(std::frexp(v, &exponent)) == 0.5);
}

// A quotient that is rounded to a level keeps its last bit: half way between two levels that bit decides.
bool is_rounded(const ir::Value* quotient) {
  return std::any_of(quotient->uses().begin(), quotient->uses().end(),
                     [](const ir::Use& use) { return use.node->is(OpKind::quantize) || is(use.node, UnaryOp::round); });
}

Result<bool> div_to_mul(Rewrite& r) {
  if (op_of(r) != Op::div || !r.input(1)->constant() || r.input(0)->constant() || !is_floating(r.output()->dtype()))
    return false;
  const Tensor& c = *r.input(1)->constant();
  std::vector<double> values = to_doubles(c);
  for (double& v : values) {
    if (!has_reciprocal(v, !r.context.fast_math || is_rounded(r.output()))) return false;
    v = 1 / v;
  }
  LATHE_ASSIGN(Tensor inverse, Tensor::allocate(c.dtype(), c.dims()));
  from_doubles(values, inverse);
  const double smallest = c.dtype() == DType::f16 ? 0x1p-14 : c.dtype() == DType::f64 ? 0x1p-1022 : 0x1p-126;
  for (double v : to_doubles(inverse))
    if (!std::isfinite(v) || std::fabs(v) < smallest) return false;
  return r.finish(r.mul(r.input(0), r.constant(std::move(inverse))));
}

Result<bool> one_over(Rewrite& r) {
  if (op_of(r) != Op::div || !is_floating(r.output()->dtype()) || scalar_of(r.input(0)) != 1) return false;
  return r.finish(r.unary(UnaryOp::recip, r.input(1)));
}

Result<bool> power(Rewrite& r) {
  if (op_of(r) != Op::pow) return false;
  const std::optional<double> exponent = scalar_of(r.input(1));
  const bool root = is_floating(r.output()->dtype()) && r.context.fast_math;
  ir::Value *x = r.input(0), *result = nullptr;
  if (exponent == 2) {
    result = r.mul(x, x);
  } else if (exponent == 0.5 && root) {
    result = r.unary(UnaryOp::sqrt, x);
  } else if (exponent == -1 && root) {
    result = r.unary(UnaryOp::recip, x);
  } else if (exponent == -0.5 && root) {
    result = r.unary(UnaryOp::recip, r.unary(UnaryOp::sqrt, x));
  }
  return result ? r.finish(result) : false;
}

// The two constants are combined by a node of their own, which folding computes.
Result<bool> merge_constants(Rewrite& r) {
  const Op op = op_of(r);
  if ((op != Op::add && op != Op::mul) || !r.input(1)->constant() || !r.input(0)->has_single_use()) return false;
  if (is_floating(r.output()->dtype()) && !r.context.fast_math) return false;
  const ir::Node* inner = made_by(r.input(0), op);
  if (!inner || !inner->input(1)->constant() || inner->input(0)->constant()) return false;
  ir::Value* merged = r.binary(op, inner->input(1), r.input(1));
  const auto volume_of = [](const ir::Value* v) { return v->constant()->volume(); };
  if (volume(merged->shape()).as_constant().value_or(INT64_MAX) >
      std::max(volume_of(inner->input(1)), volume_of(r.input(1))))
    return r.finish(r.output());
  r.absorb(inner);
  return r.finish(r.binary(op, inner->input(0), merged));
}

Result<bool> add_negative(Rewrite& r) {
  if (op_of(r) != Op::add || r.input(1)->constant()) return false;
  for (size_t i : {1, 0})
    if (const ir::Node* negative = made_by(r.input(i), UnaryOp::neg))
      return r.finish(r.minus(r.input(1 - i), negative->input(0)));
  return false;
}

// Whether every value of `from` is a value of `to`.
bool lossless(DType from, DType to) {
  if (from == to || from == DType::boolean) return true;
  if (is_storage_only(from) || is_storage_only(to)) return false;
  const auto digits = [](DType t) { return t == DType::f64 ? 53 : t == DType::f32 ? 24 : t == DType::f16 ? 11 : 8; };
  const int from_bits = static_cast<int>(8 * size_of(from)), to_bits = static_cast<int>(8 * size_of(to));
  if (is_floating(from)) return is_floating(to) && to_bits > from_bits;
  if (is_floating(to)) return digits(to) >= from_bits;
  if (to == DType::boolean || (class_of(from) == DTypeClass::signed_int && class_of(to) == DTypeClass::unsigned_int))
    return false;
  return class_of(from) == class_of(to) ? to_bits >= from_bits : to_bits > from_bits;
}

Result<bool> cast_of_cast(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::cast);
  if (!inner || !lossless(inner->input(0)->dtype(), inner->output()->dtype())) return false;
  r.absorb(inner);
  return r.finish(r.add(r.node->attributes(), {inner->input(0)}));
}

// A vector is a matrix of one row on the left, and of one column on the right; that dimension leaves the result.
Result<bool> vector_as_matrix(Rewrite& r) {
  const bool left = r.input(0)->rank() == 1, right = r.input(1)->rank() == 1;
  if (!left && !right) return false;
  MatmulAttrs attrs = r.node->attrs<MatmulAttrs>();
  std::vector<ir::Value*> operands = r.node->inputs();
  Ints added;
  if (left) {
    operands[0] = r.unsqueeze(operands[0], {0});
    attrs.transpose_a = false;
    added.push_back(-2);
  }
  if (right) {
    operands[1] = r.unsqueeze(operands[1], {1});
    attrs.transpose_b = false;
    added.push_back(-1);
  }
  return r.finish(r.squeeze(r.add(attrs, std::move(operands)), added));
}

// A constant row or matrix has no dimensions of 1 before it where it broadcasts without them: [1, 1, n] is [n] beside
// [b, s, n]. A matrix that others read would be in memory twice.
Result<bool> leading_ones(Rewrite& r) {
  const ir::Value* c = r.input(1);
  const int kept = r.node->is(OpKind::matmul) ? 2 : 1;
  if (!c->constant() || c->rank() <= kept || r.input(0)->rank() < c->rank()) return false;
  if (kept == 2 && !c->has_single_use()) return false;
  const Dims& dims = c->constant()->dims();
  const auto first = dims.end() - kept;
  if (std::any_of(dims.begin(), first, [](int64_t dim) { return dim != 1; })) return false;
  LATHE_TRY(r.graph().set_inputs(r.node, {r.input(0), r.constant(c->constant()->reshaped(Dims(first, dims.end())))}));
  return true;
}

Result<bool> reduce_axes(Rewrite& r) {
  if (!r.input(1) || !r.input(1)->constant() || r.input(1)->constant()->volume() == 0) return false;
  ReduceAttrs attrs = r.node->attrs<ReduceAttrs>();
  LATHE_ASSIGN(attrs.axes, normalize_axes(to_ints(*r.input(1)->constant()), r.input(0)->rank(), "reduce: axes"));
  return r.finish(r.add(attrs, {r.input(0)}));
}

// A softmax takes off the largest itself.
Result<bool> softmax_without_largest(Rewrite& r) {
  const ir::Node* minus = made_by(r.input(0), Op::sub);
  if (!minus) return false;
  LATHE_ASSIGN(const int64_t axis, normalize_axis(r.node->attrs<SoftmaxAttrs>().axis, r.input(0)->rank()));
  if (reduced_axis(minus->input(1), ReduceOp::max, minus->input(0)) != axis) return false;
  LATHE_TRY(r.graph().set_inputs(r.node, {minus->input(0)}));
  return true;
}

// The number that every element is which is not 0; nullopt = there are several, or they are not known.
std::optional<double> sole_number(const ir::Value* value) {
  while (!value->constant()) {
    if (value->dtype() == DType::boolean) return 1;
    const ir::Node* node = value->producer();
    if (!node) return std::nullopt;
    const bool keeps = node->is(OpKind::cast) || node->is(OpKind::trilu);
    const std::vector<const ir::Value*> operands =
        keeps ? std::vector<const ir::Value*>{node->input(0)} : unchanged_operands(*node);
    if (operands.size() != 1) return std::nullopt;
    value = operands[0];
  }
  std::optional<double> number;
  for (const double each : to_doubles(*value->constant()))
    if (each != 0 && number.value_or(each) != each)
      return std::nullopt;
    else if (each != 0)
      number = each;
  return number;
}

// c where `value` is c for the zeros of the mask and 0 elsewhere: (1 - mask) * c, or constants.
std::optional<double> number_of_hidden(const ir::Value* value, const ir::Value* mask) {
  if (const auto scaled = match_scaled(value)) {
    const ir::Node* others = made_by(scaled->x, Op::sub);
    const bool is_rest = others && scalar_of(others->input(0)) == 1 && others->input(1) == mask;
    return is_rest && sole_number(mask) == 1 ? std::optional(scaled->c) : std::nullopt;
  }
  const Tensor *numbers = value->constant(), *truths = mask->constant();
  if (!numbers || !truths || numbers->dims() != truths->dims()) return std::nullopt;
  std::optional<double> hidden;
  for (int64_t i = 0; i < numbers->volume(); ++i) {
    const double number = numbers->at_double(i);
    if (truths->at_double(i) != 0 ? number != 0 : hidden.value_or(number) != number) return std::nullopt;
    if (truths->at_double(i) == 0) hidden = number;
  }
  return hidden;
}

Result<bool> masked_by_product(Rewrite& r) {
  const Op op = op_of(r);
  if ((op != Op::add && op != Op::sub) || !is_floating(r.output()->dtype()) || !r.context.fast_math) return false;
  for (size_t side = 0; side < (op == Op::add ? 2 : 1); ++side) {
    const ir::Node* mul = made_by(r.input(side), Op::mul);
    if (!mul || !r.input(side)->has_single_use()) continue;
    for (size_t i : {1, 0}) {
      ir::Value *x = mul->input(1 - i), *mask = mul->input(i);
      if (!same_shape(x, r.output())) continue;
      const std::optional<double> hidden = number_of_hidden(r.input(1 - side), mask), factor = sole_number(mask);
      if (!hidden || !factor || !std::isfinite(*hidden) || !std::isfinite(*factor)) continue;
      r.absorb(mul);
      ir::Value* other = r.scalar(op == Op::add ? *hidden : -*hidden, x->dtype());
      return r.finish(r.select(r.cast(mask, DType::boolean), r.scaled(x, *factor), other));
    }
  }
  return false;
}

// The condition whose truth the factor is as a number, and what it is multiplied by.
struct Chosen {
  ir::Value *condition, *x;
  bool is_negated;
};
std::vector<Chosen> choices_of(const ir::Value* value) {
  std::vector<Chosen> choices;
  const ir::Node* mul = made_by(value, Op::mul);
  for (size_t i = 0; mul && i < 2; ++i) {
    const ir::Node* cast = made_by(mul->input(i), OpKind::cast);
    if (!cast || cast->input(0)->dtype() != DType::boolean) continue;
    const ir::Node* negated = made_by(cast->input(0), UnaryOp::logical_not);
    choices.push_back({negated ? negated->input(0) : cast->input(0), mul->input(1 - i), negated != nullptr});
  }
  return choices;
}

bool is_finite(const ir::Value* value) {
  const Tensor* constant = value->constant();
  for (int64_t i = 0; constant && i < constant->volume(); ++i)
    if (!std::isfinite(constant->at_double(i))) return false;
  return true;
}

// A choice between floats is meant where one side is multiplied by 0: what it would make of infinities is not kept.
Result<bool> choice_by_product(Rewrite& r) {
  if (!is(r.node, Op::add) || (is_floating(r.output()->dtype()) && !r.context.fast_math)) return false;
  for (const Chosen& a : choices_of(r.input(0)))
    for (const Chosen& b : choices_of(r.input(1))) {
      if (a.condition != b.condition || a.is_negated == b.is_negated || !is_finite(a.x) || !is_finite(b.x)) continue;
      r.absorb(r.input(0)->producer()), r.absorb(r.input(1)->producer());
      return r.finish(r.select(a.condition, a.is_negated ? b.x : a.x, a.is_negated ? a.x : b.x));
    }
  return false;
}

// Zeros of any shape, made and moved in whichever way.
bool is_zeros(const ir::Value* value) {
  while (value && !value->constant()) {
    const ir::Node* node = value->producer();
    if (!node) return false;
    if (node->is(OpKind::fill)) return node->attrs<FillAttrs>().value.at_double(0) == 0;
    const std::vector<const ir::Value*> operands = unchanged_operands(*node);
    if (operands.size() != 1) return false;
    value = operands[0];
  }
  return value && all_equal(value, 0);
}

Result<bool> initial_zeros(Rewrite& r) {
  constexpr size_t kInitialH = 4, kInitialC = 5;
  std::vector<ir::Value*> inputs = r.node->inputs();
  bool changed = false;
  for (size_t i = kInitialH; i <= kInitialC && i < inputs.size(); ++i)
    if (inputs[i] && is_zeros(inputs[i])) {
      inputs[i] = nullptr;
      changed = true;
    }
  if (changed) LATHE_TRY(r.graph().set_inputs(r.node, std::move(inputs)));
  return changed;
}

// What a cast to booleans, or a comparison with a number, says of two numbers of which a condition chooses one.
Result<bool> truth_of_choice(Rewrite& r) {
  const ir::Node* choice = made_by(r.input(0), OpKind::select);
  if (!choice || r.output()->dtype() != DType::boolean || !same_shape(choice->input(0), r.output())) return false;
  bool truths[2];
  for (const size_t i : {0, 1}) {
    std::vector<Tensor> operands;
    for (size_t input = 0; input < r.node->num_inputs(); ++input) {
      const ir::Value* value = input == 0 ? choice->input(i + 1) : r.input(input);
      if (!scalar_of(value)) return false;
      operands.push_back(*value->constant());
    }
    LATHE_ASSIGN(const std::vector<Tensor> truth, run_op(r.node->attributes(), operands, 1));
    truths[i] = truth[0].at(0) != 0;
  }
  ir::Value* condition = choice->input(0);
  if (truths[0] == truths[1]) return false;
  return r.finish(truths[0] ? condition : r.unary(UnaryOp::logical_not, condition));
}

// Whether what stands where a condition does not choose a number other than 0 is one, or the condition is true.
Result<bool> truth_beside_number(Rewrite& r) {
  const ir::Node* choice = made_by(r.input(0), OpKind::select);
  const std::optional<double> number = choice ? scalar_of(choice->input(1)) : std::nullopt;
  if (!number || *number == 0 || r.output()->dtype() != DType::boolean || scalar_of(choice->input(2))) return false;
  return r.finish(r.binary(Op::logical_or, choice->input(0), r.cast(choice->input(2), DType::boolean)));
}

// Whether all elements are 0 or c, as those of masks are.
bool is_zero_or(const ir::Value* x, double c) {
  if (const std::optional<double> number = splat_of(x)) return *number == 0 || *number == c;
  const ir::Node* node = x->producer();
  if (!node) return false;
  if (node->has_trait(kView) || node->is(OpKind::expand) || node->is(OpKind::trilu))
    return is_zero_or(node->input(0), c);
  if (!is(node, Op::mul) || !std::isfinite(c)) return false;  // infinity times 0 is no number
  for (const size_t side : {0, 1})
    if (const ir::Node* cast = made_by(node->input(side), OpKind::cast))
      if (cast->input(0)->dtype() == DType::boolean) return is_zero_or(node->input(1 - side), c);
  return false;
}

// Of an x of 0 and c. Where it is 0, x + m is 0 if m is; where it is c, both choices are c.
Result<bool> choice_by_sum(Rewrite& r) {
  const std::optional<double> c = scalar_of(r.input(1));
  const ir::Node* equal = made_by(r.input(0), Op::equal);
  const ir::Node* sum = equal && scalar_of(equal->input(1)) == 0 ? made_by(equal->input(0), Op::add) : nullptr;
  ir::Value* x = r.input(2);
  if (!c || !sum || (sum->input(0) != x && sum->input(1) != x) || !is_zero_or(x, *c)) return false;
  ir::Value* m = sum->input(sum->input(0) == x ? 1 : 0);
  const std::optional<double> number = splat_of(m);
  if (number && *number != 0) return r.finish(x);
  return r.finish(r.select(r.binary(Op::equal, m, equal->input(1)), r.input(1), x));
}

}  // namespace

Result<bool> canonicalize(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"c + x = x + c, and for every op that commutes", OpKind::elementwise, constant_second},
      {"x - c = x + (-c)", OpKind::elementwise, sub_to_add},
      {"x / c = x * (1 / c)", OpKind::elementwise, div_to_mul},
      {"1 / x = recip(x)", OpKind::elementwise, one_over},
      {"x ^ 2 = x * x; x ^ 0.5 = sqrt(x); x ^ -1 = recip(x); x ^ -0.5 = recip(sqrt(x))", OpKind::elementwise, power},
      {"(x + a) + b = x + (a + b); (x * a) * b = x * (a * b)", OpKind::elementwise, merge_constants},
      {"x + (-y) = x - y", OpKind::elementwise, add_negative},
      {"x * m + (1 - m) * c = select(m, x, c) where m is 0 or 1; so is it by constants", OpKind::elementwise,
       masked_by_product},
      {"x * cast(c) + y * cast(not c) = select(c, x, y)", OpKind::elementwise, choice_by_product},
      {"select(c, 0, 1) < 1 = c, and the like", OpKind::elementwise, truth_of_choice},
      {"cast(select(c, 0, 1)) = not c, and the like", OpKind::cast, truth_of_choice},
      {"cast(select(c, 1, x)) = c or cast(x), and for every number but 0", OpKind::cast, truth_beside_number},
      {"select(x + m == 0, c, x) = select(m == 0, c, x) where x is 0 or c", OpKind::select, choice_by_sum},
      {"einsum(a, b) = matmul(a, b) beside a softmax", OpKind::einsum, einsum_to_matmul},
      {"cast(cast(x)) = cast(x) when the first loses nothing", OpKind::cast, cast_of_cast},
      {"matmul of a vector = that of a matrix of one row or column", OpKind::matmul, vector_as_matrix},
      {"a constant row has no leading dimensions of 1", OpKind::elementwise, leading_ones},
      {"a constant matrix has none, as the right operand of a matmul", OpKind::matmul, leading_ones},
      {"reduce(x, axes) = reduce{axes}(x)", OpKind::reduce, reduce_axes},
      {"softmax(x - max x) = softmax(x)", OpKind::softmax, softmax_without_largest},
      {"an initial state of zeros is left out", OpKind::recurrence, initial_zeros},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
