// SPDX-License-Identifier: Apache-2.0
// Activations written out as arithmetic become activation nodes. Operands are in canonical form; each pattern flattens
// products, so that factors may stand in any order.
#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>

#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;
using Act = ActivationOp;

constexpr double kSqrtHalf = 0.70710678118654752, kSqrtTwoOverPi = 0.79788456080286536, kGeluCubic = 0.044715;

bool floating(const Rewrite& r) { return is_floating(r.output()->dtype()); }

// Bounds

Result<bool> min_max_to_clip(Rewrite& r) {
  const Op op = r.node->attrs<ElementwiseAttrs>().op;
  if (!floating(r) || (op != Op::min && op != Op::max)) return false;
  const std::optional<WithScalar> outer = match_scalar(r.output(), op);
  if (!outer) return false;
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  (op == Op::max ? low : high) = outer->c;
  ir::Value* x = outer->x;
  if (const ir::Node* relu = made_by(x, Act::relu); relu && op == Op::min) {
    low = 0;
    x = relu->input(0);
    r.absorb(relu);
  } else if (const auto inner = match_scalar(x, op == Op::max ? Op::min : Op::max)) {
    (op == Op::max ? high : low) = inner->c;
    r.absorb(x->producer());
    x = inner->x;
  }
  if (low > high || std::isnan(low) || std::isnan(high)) return false;
  return r.finish(r.activation(Act::clip, x, low, high));
}

double largest(DType dtype) {
  return dtype == DType::f16 ? 65504 : dtype == DType::f64 ? DBL_MAX : dtype == DType::f32 ? FLT_MAX : 0x1.FEp127;
}

Result<bool> clip_to_relu(Rewrite& r) {
  const auto& attrs = r.node->attrs<ActivationAttrs>();
  if (!is(r.node, Act::clip) || !floating(r) || attrs.alpha != 0 || attrs.beta < largest(r.output()->dtype()))
    return false;
  return r.finish(r.activation(Act::relu, r.input(0)));
}

// x = y * scale + shift, either part optional.
struct Affine {
  ir::Value* y;
  double scale = 1, shift = 0;
};
Affine affine_of(ir::Value* x) {
  Affine out{x};
  if (const auto shifted = match_shifted(x)) {
    out.shift = shifted->c;
    out.y = shifted->x;
  }
  if (const auto scaled = match_scaled(out.y)) {
    out.scale = scaled->c;
    out.y = scaled->x;
  }
  return out;
}

// clip(y * a + b, 0, 1), or clip(y * a + b, 0, h) / h.
std::optional<Affine> hard_sigmoid_of(const ir::Value* value) {
  double factor = 1;
  if (const ir::Node* known = made_by(value, Act::hard_sigmoid)) {
    const auto& attrs = known->attrs<ActivationAttrs>();
    return Affine{known->input(0), attrs.alpha, attrs.beta};
  }
  if (const auto scaled = match_scaled(value)) {
    factor = scaled->c;
    value = scaled->x;
  }
  const ir::Node* clip = made_by(value, Act::clip);
  if (!clip) return std::nullopt;
  const auto& bounds = clip->attrs<ActivationAttrs>();
  Affine affine = affine_of(clip->input(0));
  if (bounds.alpha != 0 || !near(bounds.beta * factor, 1) || affine.y == clip->input(0)) return std::nullopt;
  affine.scale *= factor;
  affine.shift *= factor;
  return affine;
}

Result<bool> to_hard_sigmoid(Rewrite& r) {
  if (!floating(r) || !r.context.fast_math || is(r.node, Act::hard_sigmoid)) return false;
  const std::optional<Affine> affine = hard_sigmoid_of(r.output());
  if (!affine) return false;
  return r.finish(r.activation(Act::hard_sigmoid, affine->y, affine->scale, affine->shift));
}

// Sums of exponentials

// x of exp(x) + 1.
ir::Value* exp_plus_one(const ir::Value* value) {
  const std::optional<WithScalar> sum = match_scalar(value, Op::add);
  const ir::Node* exp = sum && sum->c == 1 ? made_by(sum->x, UnaryOp::exp) : nullptr;
  return exp ? exp->input(0) : nullptr;
}

ir::Value* negated(const ir::Value* value) {
  if (!value) return nullptr;
  if (const ir::Node* neg = made_by(value, UnaryOp::neg)) return neg->input(0);
  const auto scaled = match_scalar(value, Op::mul);
  return scaled && scaled->c == -1 ? scaled->x : nullptr;
}

Result<bool> to_sigmoid(Rewrite& r) {
  ir::Value* x = is(r.node, UnaryOp::recip) && floating(r) ? negated(exp_plus_one(r.input(0))) : nullptr;
  if (!x) return false;
  return r.finish(r.activation(Act::sigmoid, x));
}

Result<bool> to_softplus(Rewrite& r) {
  ir::Value* x = is(r.node, UnaryOp::log) && floating(r) ? exp_plus_one(r.input(0)) : nullptr;
  if (!x) return false;
  return r.finish(r.activation(Act::softplus, x, 1, 1));
}

Result<bool> to_silu_by_division(Rewrite& r) {
  if (!is(r.node, Op::div) || !floating(r) || negated(exp_plus_one(r.input(1))) != r.input(0)) return false;
  return r.finish(r.activation(Act::silu, r.input(0)));
}

// Products: factor * x * gate(x)

bool is_silu(const FlatProduct&, ir::Value* x, ir::Value* gate) {
  const ir::Node* sigmoid = made_by(gate, Act::sigmoid);
  return sigmoid && sigmoid->input(0) == x;
}

bool is_mish(const FlatProduct&, ir::Value* x, ir::Value* gate) {
  const ir::Node* tanh = made_by(gate, Act::tanh);
  const ir::Node* softplus = tanh ? made_by(tanh->input(0), Act::softplus) : nullptr;
  if (!softplus || softplus->input(0) != x) return false;
  const auto& attrs = softplus->attrs<ActivationAttrs>();
  return attrs.alpha == 1 && attrs.beta == 1;
}

// x * clip(x + 3, 0, 6) / 6, also as x * hard_sigmoid(x).
bool is_hard_swish(const FlatProduct& product, ir::Value* x, ir::Value* gate) {
  if (const auto affine = hard_sigmoid_of(gate))
    return near(product.factor, 1) && affine->y == x && near(affine->scale, 1. / 6) && near(affine->shift, 0.5);
  const ir::Node* clip = made_by(gate, Act::clip);
  if (!clip || !near(product.factor, 1. / 6)) return false;
  const auto& bounds = clip->attrs<ActivationAttrs>();
  const Affine affine = affine_of(clip->input(0));
  return bounds.alpha == 0 && near(bounds.beta, 6) && affine.y == x && affine.scale == 1 && near(affine.shift, 3);
}

bool is_gelu_erf(const FlatProduct& product, ir::Value* x, ir::Value* gate) {
  const auto shifted = match_shifted(gate);
  const ir::Node* erf = shifted && shifted->c == 1 ? made_by(shifted->x, UnaryOp::erf) : nullptr;
  const auto scaled = erf ? match_scaled(erf->input(0)) : std::nullopt;
  return scaled && scaled->x == x && near(scaled->c, kSqrtHalf) && near(product.factor, 0.5);
}

bool consists_of(const FlatProduct& product, double factor, const ir::Value* x, size_t count) {
  if (product.leaves.size() != count || !near(product.factor, factor)) return false;
  for (const ir::Value* leaf : product.leaves)
    if (leaf != x) return false;
  return true;
}

std::optional<FlatProduct> product_at(const ir::Value* value) {
  return value->producer() ? std::optional(product_of(value->producer())) : std::nullopt;
}

// sqrt(2 / pi) * (x + 0.044715 * x^3), also as sqrt(2 / pi) * x * (1 + 0.044715 * x^2).
bool is_gelu_argument(const ir::Value* value, ir::Value* x) {
  const std::optional<FlatProduct> outer = product_at(value);
  if (!outer || !near(outer->factor, kSqrtTwoOverPi)) return false;
  if (const auto sides = pair_of(*outer, outer->leaves.size() == 2 && outer->leaves[0] == x ? 0 : 1)) {
    const auto shifted = sides->first == x ? match_shifted(sides->second) : std::nullopt;
    const std::optional<FlatProduct> square = shifted && shifted->c == 1 ? product_at(shifted->x) : std::nullopt;
    return square && consists_of(*square, kGeluCubic, x, 2);
  }
  const ir::Node* sum = outer->leaves.size() == 1 ? made_by(outer->leaves[0], Op::add) : nullptr;
  if (!sum) return false;
  for (size_t i : {0, 1}) {
    const std::optional<FlatProduct> cube = sum->input(i) == x ? product_at(sum->input(1 - i)) : std::nullopt;
    if (cube && consists_of(*cube, kGeluCubic, x, 3)) return true;
  }
  return false;
}

bool is_gelu_tanh(const FlatProduct& product, ir::Value* x, ir::Value* gate) {
  const auto shifted = match_shifted(gate);
  const ir::Node* tanh = shifted && shifted->c == 1 ? made_by(shifted->x, Act::tanh) : nullptr;
  return tanh && near(product.factor, 0.5) && is_gelu_argument(tanh->input(0), x);
}

struct Gate {
  Act op;
  bool unit;  // the product has no constant factor
  bool (*matches)(const FlatProduct& product, ir::Value* x, ir::Value* gate);
};

constexpr Gate kGates[] = {
    {Act::silu, true, is_silu},
    {Act::mish, true, is_mish},
    {Act::hard_swish, false, is_hard_swish},
    {Act::gelu_erf, false, is_gelu_erf},
    {Act::gelu_tanh, false, is_gelu_tanh},
};

Result<bool> product_to_activation(Rewrite& r) {
  if (!floating(r) || (!is(r.node, Op::mul) && !is(r.node, Op::div))) return false;
  const FlatProduct product = product_of(r.node);
  if (product.leaves.size() != 2) return false;
  for (size_t first : {0, 1}) {
    const auto [x, gate] = *pair_of(product, first);
    if (!same_shape(x, r.output()) || !same_shape(gate, r.output())) continue;
    for (const Gate& candidate : kGates) {
      if ((candidate.unit && product.factor != 1) || !candidate.matches(product, x, gate)) continue;
      for (const ir::Node* node : product.nodes) r.absorb(node);
      return r.finish(r.activation(candidate.op, x));
    }
  }
  return false;
}

}  // namespace

Result<bool> recognize_activations(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"min(max(x, a), b) = clip(x, a, b)", OpKind::elementwise, min_max_to_clip},
      {"clip(x, 0, inf) = relu(x)", OpKind::activation, clip_to_relu},
      {"clip(x * a + b, 0, 1) = hard_sigmoid{a, b}(x)", OpKind::activation, to_hard_sigmoid},
      {"clip(x * a + b, 0, h) / h = hard_sigmoid{a / h, b / h}(x)", OpKind::elementwise, to_hard_sigmoid},
      {"1 / (1 + exp(-x)) = sigmoid(x)", OpKind::unary, to_sigmoid},
      {"log(1 + exp(x)) = softplus(x)", OpKind::unary, to_softplus},
      {"x / (1 + exp(-x)) = silu(x)", OpKind::elementwise, to_silu_by_division},
      {"x * sigmoid(x) = silu; x * tanh(softplus(x)) = mish; x * clip(x + 3, 0, 6) / 6 = hard_swish;"
       " x / 2 * (1 + erf(x / sqrt(2))) = gelu_erf; x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) = "
       "gelu_tanh",
       OpKind::elementwise, product_to_activation},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
