// SPDX-License-Identifier: Apache-2.0
// Operations that give back their operand.
#include <algorithm>

#include "passes/affine.h"
#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

Result<bool> drop(Rewrite& r) { return r.finish(r.input(0)); }

Result<bool> drop_when_same_shape(Rewrite& r) { return same_shape(r.input(0), r.output()) ? drop(r) : false; }

Result<bool> drop_cast(Rewrite& r) { return r.input(0)->dtype() == r.output()->dtype() ? drop(r) : false; }

// A sorted perm moves nothing; an absent one reverses, which moves nothing below rank 2.
Result<bool> drop_transpose(Rewrite& r) {
  const Ints& perm = r.node->attrs<TransposeAttrs>().perm;
  const bool still =
      perm.empty() ? r.output()->rank() < 2 : std::is_sorted(perm.begin(), perm.end()) && perm.front() >= 0;
  return still ? drop(r) : false;
}

// Full length along every axis with forward steps.
Result<bool> drop_slice(Rewrite& r) {
  if (!same_shape(r.input(0), r.output())) return false;
  if (r.input(4)) {
    const std::optional<Ints> steps = ints_of(r.input(4));
    if (!steps || std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step < 1; })) return false;
  }
  return drop(r);
}

Result<bool> drop_pad(Rewrite& r) {
  const std::optional<Ints> pads = ints_of(r.input(1));
  return pads && std::all_of(pads->begin(), pads->end(), [](int64_t pad) { return pad == 0; }) ? drop(r) : false;
}

Result<bool> drop_single(Rewrite& r) {
  return r.node->num_inputs() == 1 && r.node->num_outputs() == 1 ? drop(r) : false;
}

Result<bool> drop_split(Rewrite& r) { return r.node->num_outputs() == 1 ? drop(r) : false; }

// An If whose condition has turned out to be constant: the other branch is then nobody's input.
Result<bool> drop_choice(Rewrite& r) {
  const Tensor* condition = r.input(0)->constant();
  ir::Value* chosen = condition ? r.input(condition->at(0) ? 1 : 2) : nullptr;
  return chosen ? r.finish(chosen) : false;
}

// The operand that the other, a constant that may be repeated, leaves as it is.
Result<bool> drop_neutral(Rewrite& r) {
  using Op = ElementwiseOp;
  const Op op = r.node->attrs<ElementwiseAttrs>().op;
  const bool unit = op == Op::mul || op == Op::div || op == Op::pow || op == Op::logical_and;
  if (!unit && op != Op::add && op != Op::sub && op != Op::logical_or) return false;
  for (size_t i : {1, 0}) {
    if (i == 0 && !commutes(op)) break;
    if (splat_of(r.input(i)) == (unit ? 1 : 0) && same_shape(r.input(1 - i), r.output()))
      return r.finish(r.input(1 - i));
  }
  return false;
}

// -(-x), |(|x|)|, relu(relu(x)): the second application of an op that is its own inverse or idempotent.
Result<bool> drop_second(Rewrite& r) {
  const UnaryOp op = r.node->attrs<UnaryAttrs>().op;
  const ir::Node* inner = made_by(r.input(0), op);
  if (!inner) return false;
  if (op == UnaryOp::neg || op == UnaryOp::logical_not || op == UnaryOp::bitwise_not) return r.finish(inner->input(0));
  const bool idempotent =
      op == UnaryOp::abs || op == UnaryOp::ceil || op == UnaryOp::floor || op == UnaryOp::round || op == UnaryOp::sign;
  return idempotent ? drop(r) : false;
}

Result<bool> drop_second_relu(Rewrite& r) {
  return is(r.node, ActivationOp::relu) && made_by(r.input(0), ActivationOp::relu) ? drop(r) : false;
}

// Indices of all places in order, a column for each dimension, as exporters write x[:, :] = updates.
Result<bool> drop_scatter(Rewrite& r) {
  const Shape& shape = r.output()->shape();
  const ir::Node* columns = made_by(r.input(1), OpKind::concat);
  if (r.node->attrs<ScatterNdAttrs>().reduction != ScatterReduction::none || !columns ||
      !is_last_axis(columns->attrs<ConcatAttrs>().axis, r.input(1)) || columns->num_inputs() != shape.size() ||
      !same_shape(r.input(2), r.output()))
    return false;
  Shape places = shape;
  places.emplace_back(1);
  for (size_t d = 0; d < shape.size(); ++d) {
    const ir::Value* column = columns->input(d);
    const std::optional<Affine> place = column->shape() == places ? affine_of(column) : std::nullopt;
    if (!place || place->first != Expr(0)) return false;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != Expr(1) && place->steps[i] != static_cast<int64_t>(i == d)) return false;
  }
  return r.finish(r.input(2));
}

}  // namespace

Result<bool> eliminate_identities(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"identity(x) = x", OpKind::identity, drop},
      {"cast(x) = x when the type stays", OpKind::cast, drop_cast},
      {"transpose(x, identity) = x", OpKind::transpose, drop_transpose},
      {"reshape(x, shape(x)) = x", OpKind::reshape, drop_when_same_shape},
      {"flatten(x) = x when x is a matrix", OpKind::flatten, drop_when_same_shape},
      {"squeeze(x, []) = x", OpKind::squeeze, drop_when_same_shape},
      {"unsqueeze(x, []) = x", OpKind::unsqueeze, drop_when_same_shape},
      {"expand(x, shape(x)) = x", OpKind::expand, drop_when_same_shape},
      {"tile(x, 1) = x", OpKind::tile, drop_when_same_shape},
      {"slice(x, everything) = x", OpKind::slice, drop_slice},
      {"pad(x, 0) = x", OpKind::pad, drop_pad},
      {"concat(x) = x", OpKind::concat, drop_single},
      {"split(x) = x for one part", OpKind::split, drop_split},
      {"scatter_nd(x, all places in order, u) = u", OpKind::scatter_nd, drop_scatter},
      {"choose(true, x, y) = x, choose(false, x, y) = y", OpKind::choose, drop_choice},
      {"x + 0 = x - 0 = x * 1 = x / 1 = x ^ 1 = x && true = x || false = x", OpKind::elementwise, drop_neutral},
      {"f(f(x)) = x or f(x)", OpKind::unary, drop_second},
      {"relu(relu(x)) = relu(x)", OpKind::activation, drop_second_relu},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
