// SPDX-License-Identifier: Apache-2.0
#include "lowering/decompose_ops.h"

#include <algorithm>

#include "ops/subscripts.h"

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

Result<Value*> reduce(Rewrite& r, ReduceOp op, Value* x, int64_t axis) {
  ReduceAttrs attrs;
  attrs.op = op;
  attrs.axes = {axis};
  return r.add(attrs, {x});
}

Result<Value*> select(Rewrite& r, Value* condition, Value* yes, Value* no) {
  return r.add(SelectAttrs(), {condition, yes, no});
}

// The equation of labels, of which there must be no more than letters.
std::optional<std::string> equation_of(const std::vector<std::vector<Label>>& operands,
                                       const std::vector<Label>& output) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::vector<Label> seen;
  std::string text;
  const auto add = [&](const std::vector<Label>& labels) {
    for (const Label label : labels) {
      const auto at = static_cast<size_t>(std::find(seen.begin(), seen.end(), label) - seen.begin());
      if (at == seen.size()) seen.push_back(label);
      if (at < kLetters.size()) text += kLetters[at];
    }
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) text += ',';
    add(operands[i]);
  }
  text += "->";
  add(output);
  return seen.size() <= kLetters.size() ? std::optional(text) : std::nullopt;
}

bool occurs(Label label, const std::vector<Label>& labels) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// What later operands or the output have of two operands' labels.
std::vector<Label> kept_of(const Subscripts& subscripts, const std::vector<Label>& left, size_t right) {
  std::vector<Label> kept;
  for (const auto* own : {&left, &subscripts.operands[right]})
    for (const Label label : *own) {
      bool needed = occurs(label, subscripts.output);
      for (size_t k = right + 1; k < subscripts.operands.size(); ++k) needed |= occurs(label, subscripts.operands[k]);
      if (needed && !occurs(label, kept)) kept.push_back(label);
    }
  return kept;
}

}  // namespace

Result<bool> decompose_lp_normalization(Rewrite& r) {
  const auto& attrs = r.node->attrs<LpNormalizationAttrs>();
  const DType type = r.output()->dtype();
  const auto p = static_cast<double>(attrs.p);
  Value* norm = nullptr;
  if (attrs.p <= 2) {
    LATHE_ASSIGN(norm, reduce(r, attrs.p == 1 ? ReduceOp::l1 : ReduceOp::l2, r.input(0), attrs.axis));
  } else {
    LATHE_ASSIGN(Value * size, r.unary(UnaryOp::abs, r.input(0)));
    LATHE_ASSIGN(Value * exponent, r.scalar(type, p));
    LATHE_ASSIGN(Value * power, r.elementwise(Op::pow, size, exponent));
    LATHE_ASSIGN(Value * sum, reduce(r, ReduceOp::sum, power, attrs.axis));
    LATHE_ASSIGN(Value * root, r.scalar(type, 1 / p));
    LATHE_ASSIGN(norm, r.elementwise(Op::pow, sum, root));
  }
  LATHE_ASSIGN(Value * zero, r.scalar(type, 0));
  LATHE_ASSIGN(Value * one, r.scalar(type, 1));
  LATHE_ASSIGN(Value * is_zero, r.elementwise(Op::equal, norm, zero));
  LATHE_ASSIGN(Value * divisor, select(r, is_zero, one, norm));
  LATHE_ASSIGN(Value * result, r.elementwise(Op::div, r.input(0), divisor));
  return r.finish(result);
}

Result<bool> decompose_hardmax(Rewrite& r) {
  const int64_t given = r.node->attrs<HardmaxAttrs>().axis;
  const int64_t axis = given < 0 ? given + r.output()->rank() : given;
  ArgReduceAttrs largest;
  largest.axis = axis;
  largest.keepdims = false;
  OneHotAttrs one_hot;
  one_hot.axis = axis;
  LATHE_ASSIGN(Value * where, r.add(largest, {r.input(0)}));
  LATHE_ASSIGN(Value * extent, r.dims_of(r.input(0), axis, axis + 1));
  LATHE_ASSIGN(Tensor values, Tensor::allocate(r.output()->dtype(), {2}));
  dispatch(values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    values.mutable_as<T>()[0] = T(0);
    values.mutable_as<T>()[1] = T(1);
  });
  LATHE_ASSIGN(Value * off_on, r.constant(std::move(values)));
  LATHE_ASSIGN(Value * result, r.add(one_hot, {where, extent, off_on}));
  return r.finish(result);
}

Result<bool> decompose_prelu(Rewrite& r) {
  if (is_floating(r.output()->dtype())) return false;
  LATHE_ASSIGN(Value * zero, r.scalar(r.output()->dtype(), 0));
  LATHE_ASSIGN(Value * below, r.elementwise(Op::less, r.input(0), zero));
  LATHE_ASSIGN(Value * scaled, r.elementwise(Op::mul, r.input(0), r.input(1)));
  LATHE_ASSIGN(Value * result, select(r, below, scaled, r.input(0)));
  return r.finish(result);
}

Result<bool> decompose_lrn(Rewrite& r) {
  constexpr int64_t kMostTaps = 32;
  const auto& attrs = r.node->attrs<LrnAttrs>();
  Value* const x = r.input(0);
  if (attrs.size < 1 || attrs.size > kMostTaps) return false;
  LATHE_ASSIGN(Value * square, r.elementwise(Op::mul, x, x));
  LATHE_ASSIGN(Value * pads, r.ints({(attrs.size - 1) / 2, attrs.size / 2}));
  LATHE_ASSIGN(Value * zero, r.scalar(x->dtype(), 0));
  LATHE_ASSIGN(Value * axis, r.ints({1}));
  LATHE_ASSIGN(Value * padded, r.add(PadAttrs(), {square, pads, zero, axis}));
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < attrs.size; ++tap) {
    const int64_t behind = attrs.size - 1 - tap;
    LATHE_ASSIGN(Value * from, r.ints({tap}));
    LATHE_ASSIGN(Value * to, r.ints({behind ? -behind : INT64_MAX}));
    LATHE_ASSIGN(Value * part, r.add(SliceAttrs(), {padded, from, to, axis}));
    if (sum) {
      LATHE_ASSIGN(part, r.elementwise(Op::add, sum, part));
    }
    sum = part;
  }
  LATHE_ASSIGN(Value * factor, r.scalar(x->dtype(), attrs.alpha / static_cast<double>(attrs.size)));
  LATHE_ASSIGN(Value * bias, r.scalar(x->dtype(), attrs.bias));
  LATHE_ASSIGN(Value * beta, r.scalar(x->dtype(), attrs.beta));
  LATHE_ASSIGN(Value * scaled, r.elementwise(Op::mul, sum, factor));
  LATHE_ASSIGN(Value * base, r.elementwise(Op::add, scaled, bias));
  LATHE_ASSIGN(Value * power, r.elementwise(Op::pow, base, beta));
  LATHE_ASSIGN(Value * result, r.elementwise(Op::div, x, power));
  return r.finish(result);
}

Result<bool> decompose_einsum(Rewrite& r) {
  std::vector<int64_t> ranks;
  for (const Value* input : r.node->inputs()) ranks.push_back(input->rank());
  const Result<Subscripts> subscripts = parse_subscripts(r.node->attrs<EinsumAttrs>().equation, ranks);
  if (!subscripts || ranks.size() <= 2) return false;
  const std::vector<Value*> operands(r.node->inputs().begin(), r.node->inputs().end());
  Value* result = operands[0];
  std::vector<Label> labels = subscripts->operands[0];
  const auto contract = [&](const std::vector<std::vector<Label>>& own, std::vector<Label> output,
                            std::vector<Value*> inputs) -> Result<bool> {
    const std::optional<std::string> equation = equation_of(own, output);
    if (!equation) return false;
    EinsumAttrs attrs;
    attrs.equation = *equation;
    LATHE_ASSIGN(result, r.add(attrs, std::move(inputs)));
    labels = std::move(output);
    return true;
  };
  for (size_t k = 1; k < operands.size(); ++k) {
    const bool last = k + 1 == operands.size();
    LATHE_ASSIGN(const bool done,
                 contract({labels, subscripts->operands[k]},
                          last ? subscripts->output : kept_of(*subscripts, labels, k), {result, operands[k]}));
    if (!done) return r.finish(r.output());
  }
  return r.finish(result);
}

}  // namespace lathe
