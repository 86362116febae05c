// SPDX-License-Identifier: Apache-2.0
// Batch normalisation with constant statistics is a scale and a shift per channel: into the weights of the linear op
// before it, else one multiplication and one addition.
#include <cmath>

#include "ops/rules.h"
#include "passes/linear.h"
#include "passes/match.h"

namespace lathe {
namespace {

// Factors are of f32, as those of PyTorch are that folds, so that a refit multiplies weights of f32 by floats, which
// takes no longer than to copy them; the shift has the rounded factor, too.
DType factor_type(const Rewrite& r) { return r.output()->dtype() == DType::f64 ? DType::f64 : DType::f32; }

// What follows from weights that can be replaced is computed in the same order as below.
Result<bool> fold_derived(Rewrite& r, double epsilon) {
  WeightsMath math;
  const auto parameter = [&](size_t i) { return math.cast(r.input(i)->known(), DType::f64); };
  const Known deviation =
      math.unary(UnaryOp::sqrt, math.binary(ElementwiseOp::add, parameter(4), WeightsMath::scalar(epsilon)));
  const Known quotient = math.binary(ElementwiseOp::div, parameter(1), deviation);
  const Known scale = math.cast(math.cast(quotient, factor_type(r)), DType::f64);
  const Known shift =
      math.binary(ElementwiseOp::sub, parameter(2), math.binary(ElementwiseOp::mul, parameter(3), scale));
  if (math.error()) return fail(*math.error());
  const std::optional<Linear> linear = linear_of(r.input(0));
  if (linear && linear->axis == 1 && linear->channels == scale.content.volume())
    if (ir::Value* result = add_derived(r, *linear, scale, shift)) return r.finish(result);
  Dims dims(static_cast<size_t>(r.output()->rank()) - 1, 1);
  dims[0] = scale.content.volume();
  const auto channels = [&](const Known& x) {
    return r.known(math.finish(math.reshape(math.cast(x, r.output()->dtype()), dims)));
  };
  ir::Value* factor = channels(scale);
  return r.finish(r.plus(r.mul(r.input(0), factor), channels(shift)));
}

Result<bool> fold(Rewrite& r) {
  const auto& attrs = r.node->attrs<BatchNormalizationAttrs>();
  if (attrs.training || r.node->num_outputs() > 1 || r.output()->rank() < 2) return false;
  bool derived = false;
  for (size_t i = 1; i < 5; ++i) {
    if (!r.input(i)->content()) return false;
    derived |= is_derived(r.input(i));
  }
  const std::optional<Linear> before = linear_of(r.input(0));
  if (derived || (before && is_derived(*before))) return fold_derived(r, attrs.epsilon);
  std::vector<double> parameters[4];  // scale, bias, mean, variance
  for (size_t i = 0; i < 4; ++i) {
    if (!r.input(i + 1)->constant()) return false;
    parameters[i] = to_doubles(*r.input(i + 1)->constant());
  }
  std::vector<double>&scale = parameters[0], &shift = parameters[1];
  for (size_t c = 0; c < scale.size(); ++c) {
    scale[c] = rounded_to(factor_type(r), scale[c] / std::sqrt(parameters[3][c] + attrs.epsilon));
    shift[c] -= parameters[2][c] * scale[c];
  }
  const std::optional<Linear>& linear = before;
  if (linear && linear->axis == 1 && linear->channels == static_cast<int64_t>(scale.size()))
    return r.finish(add_scaled(r, *linear, scale, shift));
  const int rank = r.output()->rank();
  ir::Value* factor = r.constant(channel_tensor(r.output()->dtype(), scale, rank, 1));
  ir::Value* addend = r.constant(channel_tensor(r.output()->dtype(), shift, rank, 1));
  return r.finish(r.plus(r.mul(r.input(0), factor), addend));
}

}  // namespace

Result<bool> fold_batch_normalization(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"bn(linear(x, w, b)) = linear(x, w * s, b * s + t); bn(x) = x * s + t; s = scale / sqrt(var + eps), t = bias - "
       "mean * s",
       OpKind::batch_normalization, fold},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
