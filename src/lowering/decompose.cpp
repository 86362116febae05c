// SPDX-License-Identifier: Apache-2.0
#include "lowering/decompose.h"

#include "lowering/decompose_attention.h"
#include "lowering/decompose_ops.h"
#include "lowering/decompose_windows.h"

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

// A value for each channel along dimension 1 of x.
Value* along_channels(Rewrite& r, Value* value) {
  Ints shape(static_cast<size_t>(r.input(0)->rank() - 1), 1);
  shape[0] = -1;
  return r.reshape(value, shape);
}

Result<bool> finish_affine(Rewrite& r, Value* x, Value* scale, Value* bias) {
  x = r.mul(x, scale);
  if (bias) x = r.plus(x, bias);
  return r.finish(x);
}

Result<bool> finish_channels(Rewrite& r, Value* x) {
  Value* scale = along_channels(r, r.input(1));
  Value* bias = along_channels(r, r.input(2));
  return finish_affine(r, x, scale, bias);
}

Ints axes_from(const Value* x, int64_t axis) {
  Ints axes;
  for (int64_t d = axis < 0 ? axis + x->rank() : axis; d < x->rank(); ++d) axes.push_back(d);
  return axes;
}

Result<bool> softmax(Rewrite& r) {
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

Result<bool> layer_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return false;
  const auto& attrs = r.node->attrs<LayerNormalizationAttrs>();
  Value* x = normalized(r, r.input(0), axes_from(r.input(0), attrs.axis), attrs.epsilon);
  return finish_affine(r, x, r.input(1), r.input(2));
}

Result<bool> rms_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return false;
  const auto& attrs = r.node->attrs<RmsNormalizationAttrs>();
  Value* x = normalized(r, r.input(0), axes_from(r.input(0), attrs.axis), attrs.epsilon, false);
  return finish_affine(r, x, r.input(1), nullptr);
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

Result<bool> instance_normalization(Rewrite& r) {
  if (!is_decomposable(r) && !has_open_channels(r)) return computed_affine<InstanceNormalizationAttrs>(r);
  const double epsilon = r.node->attrs<InstanceNormalizationAttrs>().epsilon;
  Value* x = normalized(r, r.input(0), axes_from(r.input(0), 2), epsilon);
  return finish_channels(r, x);
}

Result<bool> group_normalization(Rewrite& r) {
  if (!is_decomposable(r) && !has_open_channels(r)) return computed_affine<GroupNormalizationAttrs>(r);
  const auto& attrs = r.node->attrs<GroupNormalizationAttrs>();
  Value* x = r.reshape(r.input(0), {0, attrs.groups, -1});
  x = normalized(r, x, {2}, attrs.epsilon);
  return finish_channels(r, r.reshape(x, r.shape_of(r.input(0))));
}

Result<bool> batch_normalization(Rewrite& r) {
  const auto& attrs = r.node->attrs<BatchNormalizationAttrs>();
  if (attrs.training || r.node->num_outputs() != 1) return false;
  Value* mean = along_channels(r, r.input(3));
  Value* variance = along_channels(r, r.input(4));
  Value* inverse = inverse_deviation(r, variance, attrs.epsilon);
  return finish_channels(r, r.mul(r.minus(r.input(0), mean), inverse));
}

// Into ops some of which have rules of their own.
constexpr Rule kCompositeRules[] = {
    {"attention(q, k, v) = softmax(q k) v", OpKind::attention, decompose_attention},
};
constexpr Rule kRules[] = {
    {"softmax(x) = exp(x - max x) / sum exp(x - max x)", OpKind::softmax, softmax},
    {"layer_normalization(x) = (x - mean x) / deviation * scale + bias", OpKind::layer_normalization,
     layer_normalization},
    {"rms_normalization(x) = x / sqrt(mean x * x + epsilon) * scale", OpKind::rms_normalization, rms_normalization},
    {"instance_normalization(x): the same over pixels", OpKind::instance_normalization, instance_normalization},
    {"group_normalization(x): the same over groups", OpKind::group_normalization, group_normalization},
    {"batch_normalization(x): the same with known moments", OpKind::batch_normalization, batch_normalization},
    {"convolution(x) = sum of products of its taps", OpKind::convolution, decompose_convolution},
    {"convolution(x, w) = w x, of computed 1x1 kernels", OpKind::convolution, multiply_pixels},
    {"pooling(x) = maximum, mean or norm of its taps", OpKind::pooling, decompose_pooling},
    {"lp_normalization(x) = x / norm(x)", OpKind::lp_normalization, decompose_lp_normalization},
    {"hardmax(x) = one_hot(arg_reduce x)", OpKind::hardmax, decompose_hardmax},
    {"prelu(x) = x < 0 ? x * slope : x", OpKind::prelu, decompose_prelu},
    {"lrn(x) = x / (bias + scale * sum x * x)^beta", OpKind::lrn, decompose_lrn},
    {"einsum(a, b, c) = einsum(einsum(a, b), c)", OpKind::einsum, decompose_einsum},
};

}  // namespace

Result<bool> decompose_doubles(ir::Graph& graph, PassContext& context) {
  LATHE_ASSIGN(const bool first, apply_rules(graph, context, kCompositeRules));
  LATHE_ASSIGN(const bool second, apply_rules(graph, context, kRules));
  return first || second;
}

}  // namespace lathe
