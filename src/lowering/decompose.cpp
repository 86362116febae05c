// SPDX-License-Identifier: Apache-2.0
#include "lowering/decompose.h"

#include "lowering/decompose_attention.h"
#include "lowering/decompose_ops.h"
#include "lowering/decompose_windows.h"
#include "ops/rules.h"

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

bool is_decomposable(const Rewrite& r) { return r.output()->dtype() == DType::f64 && r.node->num_outputs() == 1; }

Result<Value*> reduce(Rewrite& r, ReduceOp op, Value* x, const Ints& axes) {
  ReduceAttrs attrs;
  attrs.op = op;
  attrs.axes = axes;
  return r.add(attrs, {x});
}

// 1 / sqrt(x + epsilon)
Result<Value*> inverse_deviation(Rewrite& r, Value* variance, double epsilon) {
  LATHE_ASSIGN(Value * added, r.scalar(variance->dtype(), epsilon));
  LATHE_ASSIGN(Value * sum, r.elementwise(Op::add, variance, added));
  LATHE_ASSIGN(Value * root, r.unary(UnaryOp::sqrt, sum));
  return r.unary(UnaryOp::recip, root);
}

// (x - mean) / sqrt(variance + epsilon); without a mean, x / sqrt(mean square + epsilon).
Result<Value*> normalized(Rewrite& r, Value* x, const Ints& axes, double epsilon, bool centered = true) {
  if (centered) {
    LATHE_ASSIGN(Value * mean, reduce(r, ReduceOp::mean, x, axes));
    LATHE_ASSIGN(x, r.elementwise(Op::sub, x, mean));
  }
  LATHE_ASSIGN(Value * square, r.elementwise(Op::mul, x, x));
  LATHE_ASSIGN(Value * variance, reduce(r, ReduceOp::mean, square, axes));
  LATHE_ASSIGN(Value * inverse, inverse_deviation(r, variance, epsilon));
  return r.elementwise(Op::mul, x, inverse);
}

// A value for each channel along dimension 1 of x.
Result<Value*> along_channels(Rewrite& r, Value* value) {
  Ints shape(static_cast<size_t>(r.input(0)->rank() - 1), 1);
  shape[0] = -1;
  return r.reshape(value, shape);
}

Result<bool> finish_affine(Rewrite& r, Value* x, Value* scale, Value* bias) {
  LATHE_ASSIGN(x, r.elementwise(Op::mul, x, scale));
  if (bias) {
    LATHE_ASSIGN(x, r.elementwise(Op::add, x, bias));
  }
  return r.finish(x);
}

Result<bool> finish_channels(Rewrite& r, Value* x) {
  LATHE_ASSIGN(Value * scale, along_channels(r, r.input(1)));
  LATHE_ASSIGN(Value * bias, along_channels(r, r.input(2)));
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
  LATHE_ASSIGN(Value * largest, reduce(r, ReduceOp::max, r.input(0), axes));
  LATHE_ASSIGN(Value * x, r.elementwise(Op::sub, r.input(0), largest));
  LATHE_ASSIGN(Value * power, r.unary(UnaryOp::exp, x));
  LATHE_ASSIGN(Value * sum, reduce(r, ReduceOp::sum, power, axes));
  if (log) {
    LATHE_ASSIGN(sum, r.unary(UnaryOp::log, sum));
  }
  LATHE_ASSIGN(Value * result, r.elementwise(log ? Op::sub : Op::div, log ? x : power, sum));
  return r.finish(result);
}

Result<bool> layer_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return false;
  const auto& attrs = r.node->attrs<LayerNormalizationAttrs>();
  LATHE_ASSIGN(Value * x, normalized(r, r.input(0), axes_from(r.input(0), attrs.axis), attrs.epsilon));
  return finish_affine(r, x, r.input(1), r.input(2));
}

Result<bool> rms_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return false;
  const auto& attrs = r.node->attrs<RmsNormalizationAttrs>();
  LATHE_ASSIGN(Value * x, normalized(r, r.input(0), axes_from(r.input(0), attrs.axis), attrs.epsilon, false));
  return finish_affine(r, x, r.input(1), nullptr);
}

// The same with a scale of 1 and a bias of 0, which are constant, as its kernel has them, and then those.
template <class Attrs>
Result<bool> computed_affine(Rewrite& r) {
  const std::optional<int64_t> channels = r.input(1)->shape()[0].as_constant();
  if ((r.input(1)->constant() && r.input(2)->constant()) || !channels) return false;
  const auto repeated = [&](double value) -> Result<Value*> {
    LATHE_ASSIGN(Tensor tensor, Tensor::allocate(r.output()->dtype(), {*channels}));
    from_doubles(std::vector<double>(static_cast<size_t>(*channels), value), tensor);
    return r.constant(std::move(tensor));
  };
  LATHE_ASSIGN(Value * ones, repeated(1));
  LATHE_ASSIGN(Value * zeros, repeated(0));
  LATHE_ASSIGN(Value * x, r.add(r.node->template attrs<Attrs>(), {r.input(0), ones, zeros}));
  return finish_channels(r, x);
}

Result<bool> instance_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return computed_affine<InstanceNormalizationAttrs>(r);
  const double epsilon = r.node->attrs<InstanceNormalizationAttrs>().epsilon;
  LATHE_ASSIGN(Value * x, normalized(r, r.input(0), axes_from(r.input(0), 2), epsilon));
  return finish_channels(r, x);
}

Result<bool> group_normalization(Rewrite& r) {
  if (!is_decomposable(r)) return computed_affine<GroupNormalizationAttrs>(r);
  const auto& attrs = r.node->attrs<GroupNormalizationAttrs>();
  LATHE_ASSIGN(Value * x, r.reshape(r.input(0), {0, attrs.groups, -1}));
  LATHE_ASSIGN(x, normalized(r, x, {2}, attrs.epsilon));
  LATHE_ASSIGN(Value * shape, r.add(ShapeAttrs(), {r.input(0)}));
  LATHE_ASSIGN(x, r.add(ReshapeAttrs(), {x, shape}));
  return finish_channels(r, x);
}

Result<bool> batch_normalization(Rewrite& r) {
  const auto& attrs = r.node->attrs<BatchNormalizationAttrs>();
  if (attrs.training || r.node->num_outputs() != 1) return false;
  LATHE_ASSIGN(Value * mean, along_channels(r, r.input(3)));
  LATHE_ASSIGN(Value * variance, along_channels(r, r.input(4)));
  LATHE_ASSIGN(Value * inverse, inverse_deviation(r, variance, attrs.epsilon));
  LATHE_ASSIGN(Value * x, r.elementwise(Op::sub, r.input(0), mean));
  LATHE_ASSIGN(x, r.elementwise(Op::mul, x, inverse));
  return finish_channels(r, x);
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
