// SPDX-License-Identifier: Apache-2.0
#include "passes/decompose.h"

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

bool is_decomposable(const Rewrite& r) { return r.output()->dtype() == DType::f64 && r.node->num_outputs() == 1; }

// 1 / sqrt(x + epsilon)
Value* inverse_deviation(Rewrite& r, Value* variance, double epsilon) {
  return r.unary(UnaryOp::recip, r.unary(UnaryOp::sqrt, r.binary(Op::add, variance, epsilon)));
}

// (x - mean) / sqrt(variance + epsilon); without a mean, x / sqrt(mean square + epsilon).
Value* normalized(Rewrite& r, Value* x, const Ints& axes, double epsilon, bool centered = true) {
  if (centered) x = r.minus(x, r.reduce(ReduceOp::mean, x, axes));
  return r.mul(x, inverse_deviation(r, r.reduce(ReduceOp::mean, r.mul(x, x), axes), epsilon));
}

Result<bool> finish_affine(Rewrite& r, Value* x, Value* scale, Value* bias) {
  x = r.mul(x, scale);
  if (bias) x = r.plus(x, bias);
  return r.finish(x);
}

Result<bool> finish_channels(Rewrite& r, Value* x) {
  Value* scale = along_channels(r, r.input(1), r.input(0)->rank());
  Value* bias = along_channels(r, r.input(2), r.input(0)->rank());
  return finish_affine(r, x, scale, bias);
}

Ints axes_from(const Value* x, int64_t axis) {
  Ints axes;
  for (int64_t d = axis < 0 ? axis + x->rank() : axis; d < x->rank(); ++d) axes.push_back(d);
  return axes;
}

// The same with a scale of 1 and a bias of 0, which are constant, as its kernel has them, and then those.
template <class Attrs>
Result<bool> computed_affine(Rewrite& r) {
  if (r.input(1)->constant() && r.input(2)->constant()) return false;
  const int64_t channels = *r.input(1)->shape()[0].as_constant();
  const auto repeated = [&](double value) { return r.filled(value, r.output()->dtype(), {channels}); };
  return finish_channels(r, r.add(r.node->template attrs<Attrs>(), {r.input(0), repeated(1), repeated(0)}));
}

// There is no constant with a value for each of them.
bool has_open_channels(const Rewrite& r) { return !r.input(1)->shape()[0].is_constant(); }

constexpr Rule kRules[] = {
#define LATHE_DECOMPOSITION(name, op, equation) {equation, OpKind::op, decompose_##name},
#include "passes/decompositions.def"
#undef LATHE_DECOMPOSITION
};

}  // namespace

Value* along_channels(Rewrite& r, Value* value, int rank) {
  Ints shape(static_cast<size_t>(rank - 1), 1);
  shape[0] = -1;
  return r.reshape(value, shape);
}

Result<bool> decompose_softmax(Rewrite& r) {
  if (!is_decomposable(r)) return false;
  const auto& attrs = r.node->attrs<SoftmaxAttrs>();
  const Ints axes = {attrs.axis < 0 ? attrs.axis + r.output()->rank() : attrs.axis};
  const bool log = attrs.log;
  Value* x = r.minus(r.input(0), r.reduce(ReduceOp::max, r.input(0), axes));
  Value* power = r.unary(UnaryOp::exp, x);
  Value* sum = r.reduce(ReduceOp::sum, power, axes);
  if (log) sum = r.unary(UnaryOp::log, sum);
  return r.finish(r.binary(log ? Op::sub : Op::div, log ? x : power, sum));
}

Result<bool> decompose_layer_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return false;
  const auto& attrs = r.node->attrs<LayerNormalizationAttrs>();
  Value* x = normalized(r, r.input(0), axes_from(r.input(0), attrs.axis), attrs.epsilon);
  return finish_affine(r, x, r.input(1), r.input(2));
}

Result<bool> decompose_rms_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return false;
  const auto& attrs = r.node->attrs<RmsNormalizationAttrs>();
  Value* x = normalized(r, r.input(0), axes_from(r.input(0), attrs.axis), attrs.epsilon, false);
  return finish_affine(r, x, r.input(1), nullptr);
}

Result<bool> decompose_instance_normalization(Rewrite& r) {
  if (!is_decomposable(r) && !has_open_channels(r)) return computed_affine<InstanceNormalizationAttrs>(r);
  const double epsilon = r.node->attrs<InstanceNormalizationAttrs>().epsilon;
  Value* x = normalized(r, r.input(0), axes_from(r.input(0), 2), epsilon);
  return finish_channels(r, x);
}

Result<bool> decompose_group_normalization(Rewrite& r) {
  if (!is_decomposable(r) && !has_open_channels(r)) return computed_affine<GroupNormalizationAttrs>(r);
  const auto& attrs = r.node->attrs<GroupNormalizationAttrs>();
  Value* x = r.reshape(r.input(0), {0, attrs.groups, -1});
  x = normalized(r, x, {2}, attrs.epsilon);
  return finish_channels(r, r.reshape(x, r.shape_of(r.input(0))));
}

Result<bool> decompose_batch_normalization(Rewrite& r) {
  const auto& attrs = r.node->attrs<BatchNormalizationAttrs>();
  if (attrs.training || r.node->num_outputs() != 1) return false;
  Value* mean = along_channels(r, r.input(3), r.input(0)->rank());
  Value* variance = along_channels(r, r.input(4), r.input(0)->rank());
  Value* inverse = inverse_deviation(r, variance, attrs.epsilon);
  return finish_channels(r, r.mul(r.minus(r.input(0), mean), inverse));
}

Result<bool> decompose(ir::Graph& graph, PassContext& context) {
  return context.arithmetic.f32_rows ? apply_rules(graph, context, kRules) : Result<bool>(false);
}

}  // namespace lathe
