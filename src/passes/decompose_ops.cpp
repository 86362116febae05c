// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/subscripts.h"
#include "passes/decompose.h"

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

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
  const auto p = static_cast<double>(attrs.p);
  Value* norm = nullptr;
  if (attrs.p <= 2) {
    norm = r.reduce(attrs.p == 1 ? ReduceOp::l1 : ReduceOp::l2, r.input(0), {attrs.axis});
  } else {
    Value* power = r.binary(Op::pow, r.unary(UnaryOp::abs, r.input(0)), p);
    norm = r.binary(Op::pow, r.reduce(ReduceOp::sum, power, {attrs.axis}), 1 / p);
  }
  Value* is_zero = r.binary(Op::equal, norm, 0.0);
  return r.finish(r.divide(r.input(0), r.select(is_zero, r.scalar_like(1, norm), norm)));
}

Result<bool> decompose_hardmax(Rewrite& r) {
  const int64_t given = r.node->attrs<HardmaxAttrs>().axis;
  const int64_t axis = given < 0 ? given + r.output()->rank() : given;
  ArgReduceAttrs largest;
  largest.axis = axis;
  largest.keepdims = false;
  OneHotAttrs one_hot;
  one_hot.axis = axis;
  Value* where = r.add(largest, {r.input(0)});
  Value* extent = r.shape_of(r.input(0), axis, axis + 1);
  LATHE_ASSIGN(Tensor values, Tensor::allocate(r.output()->dtype(), {2}));
  dispatch(values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    values.mutable_as<T>()[0] = T(0);
    values.mutable_as<T>()[1] = T(1);
  });
  Value* off_on = r.constant(std::move(values));
  return r.finish(r.add(one_hot, {where, extent, off_on}));
}

Result<bool> decompose_prelu(Rewrite& r) {
  if (is_floating(r.output()->dtype())) return false;
  Value* below = r.binary(Op::less, r.input(0), 0.0);
  return r.finish(r.select(below, r.mul(r.input(0), r.input(1)), r.input(0)));
}

Result<bool> decompose_lrn(Rewrite& r) {
  constexpr int64_t kMostTaps = 32;
  const auto& attrs = r.node->attrs<LrnAttrs>();
  Value* const x = r.input(0);
  if (attrs.size < 1 || attrs.size > kMostTaps) return false;
  Value* square = r.mul(x, x);
  Value* pads = r.ints({(attrs.size - 1) / 2, attrs.size / 2});
  Value* padded = r.add(PadAttrs(), {square, pads, r.scalar_like(0, x), r.ints({1})});
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < attrs.size; ++tap) {
    const int64_t behind = attrs.size - 1 - tap;
    Value* part = r.slice(padded, 1, tap, behind ? -behind : INT64_MAX);
    sum = sum ? r.plus(sum, part) : part;
  }
  Value* scaled = r.binary(Op::mul, sum, attrs.alpha / static_cast<double>(attrs.size));
  Value* base = r.binary(Op::add, scaled, attrs.bias);
  return r.finish(r.divide(x, r.binary(Op::pow, base, attrs.beta)));
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
                            std::vector<Value*> inputs) {
    const std::optional<std::string> equation = equation_of(own, output);
    if (!equation) return false;
    EinsumAttrs attrs;
    attrs.equation = *equation;
    result = r.add(attrs, std::move(inputs));
    labels = std::move(output);
    return true;
  };
  for (size_t k = 1; k < operands.size(); ++k) {
    const bool last = k + 1 == operands.size();
    if (!contract({labels, subscripts->operands[k]}, last ? subscripts->output : kept_of(*subscripts, labels, k),
                  {result, operands[k]}))
      return r.finish(r.output());
  }
  return r.finish(result);
}

}  // namespace lathe
