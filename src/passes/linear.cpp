// SPDX-License-Identifier: Apache-2.0
#include "passes/linear.h"

#include <algorithm>

#include "ops/rules.h"

namespace lathe {
namespace {

// Calls f(first element, count, channel) for each run of weights that belong to one output channel.
template <class F>
void for_channels(const Linear& linear, F f) {
  const Dims& dims = linear.weights->dims();
  const int64_t total = linear.weights->volume();
  if (total == 0) return;
  if (linear.node->is(OpKind::convolution)) {
    const int64_t run = total / dims[0];
    for (int64_t c = 0; c < dims[0]; ++c) f(c * run, run, c);
  } else if (linear.node->is(OpKind::deconvolution)) {
    const int64_t run = total / (dims[0] * dims[1]);
    const int64_t group_inputs = dims[0] / linear.node->attrs<DeconvolutionAttrs>().groups;
    for (int64_t i = 0; i < dims[0]; ++i)
      for (int64_t o = 0; o < dims[1]; ++o) f((i * dims[1] + o) * run, run, i / group_inputs * dims[1] + o);
  } else if (linear.node->attrs<MatmulAttrs>().transpose_b) {
    for (int64_t c = 0; c < dims[0]; ++c) f(c * dims[1], dims[1], c);
  } else {
    for (int64_t k = 0; k < dims[0]; ++k)
      for (int64_t c = 0; c < dims[1]; ++c) f(k * dims[1] + c, 1, c);
  }
}

int64_t output_channels(const ir::Node& node, const Dims& weights) {
  if (node.is(OpKind::convolution)) return weights[0];
  if (node.is(OpKind::deconvolution)) return weights[1] * node.attrs<DeconvolutionAttrs>().groups;
  return node.attrs<MatmulAttrs>().transpose_b ? weights[0] : weights[1];
}

Result<Tensor> scaled_weights(const Linear& linear, std::span<const double> scale) {
  LATHE_ASSIGN(Tensor weights, Tensor::allocate(linear.weights->dtype(), linear.weights->dims()));
  const auto scale_into = [&](const auto* from, auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    for_channels(linear, [&](int64_t first, int64_t count, int64_t channel) {
      const double factor = scale[static_cast<size_t>(channel)];
      for (int64_t i = first; i < first + count; ++i) to[i] = static_cast<T>(from[i] * factor);
    });
  };
  if (weights.dtype() == DType::f32) {  // the common case, without a copy in double
    scale_into(linear.weights->as<float>(), weights.mutable_as<float>());
    return weights;
  }
  std::vector<double> values = to_doubles(*linear.weights);
  scale_into(values.data(), values.data());
  from_doubles(values, weights);
  return weights;
}

// Along this axis of a value at most, which it does not widen.
bool varies_along(const Tensor& tensor, const ir::Value* value, size_t axis) {
  const std::optional<int64_t> extent = value->shape()[axis].as_constant();
  if (!extent || tensor.rank() > value->rank()) return false;
  const size_t lead = static_cast<size_t>(value->rank() - tensor.rank());
  for (size_t d = 0; d < tensor.dims().size(); ++d)
    if (tensor.dims()[d] != 1 && (lead + d != axis || tensor.dims()[d] != *extent)) return false;
  return true;
}

// Of one number per output channel, to broadcast against the weights; nullopt where no reshaping does that.
std::optional<Dims> factor_dims(const Linear& linear) {
  Dims dims(linear.weights->dims().size(), 1);
  if (linear.node->is(OpKind::deconvolution) && linear.node->attrs<DeconvolutionAttrs>().groups != 1)
    return std::nullopt;
  const bool second = linear.node->is(OpKind::deconvolution) ||
                      (linear.node->is(OpKind::matmul) && !linear.node->attrs<MatmulAttrs>().transpose_b);
  dims[second ? 1 : 0] = linear.channels;
  return dims;
}

}  // namespace

std::optional<Linear> linear_of(const ir::Value* value) {
  const ir::Node* node = value->producer();
  if (!node || !value->has_single_use() || !is_floating(value->dtype())) return std::nullopt;
  const bool product = node->is(OpKind::matmul);
  if (!product && !node->is(OpKind::convolution) && !node->is(OpKind::deconvolution)) return std::nullopt;
  // Not into levels, which products of them give floats of: they would be rounded anew.
  if (!is_floating(node->input(1)->dtype())) return std::nullopt;
  const Tensor* weights = node->input(1)->content();
  if (!weights || weights->rank() < 2 || (product && (weights->rank() != 2 || value->rank() < 2))) return std::nullopt;
  const ir::Value* bias = node->input(2);
  if (bias && !bias->content()) return std::nullopt;
  const size_t axis = product ? static_cast<size_t>(value->rank()) - 1 : 1;
  return Linear{node, output_channels(*node, weights->dims()), axis, weights, bias ? bias->content() : nullptr};
}

ir::Value* add_scaled(Rewrite& rewrite, const Linear& linear, std::span<const double> scale,
                      std::span<const double> shift) {
  rewrite.absorb(linear.node);
  const DType dtype = linear.weights->dtype();
  std::vector<ir::Value*> inputs = {linear.node->input(0), linear.node->input(1)};
  if (std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1; }))
    inputs[1] = rewrite.constant(scaled_weights(linear, scale));
  std::vector<double> bias(shift.begin(), shift.end());
  if (linear.bias) {
    const std::vector<double> old = to_doubles(*linear.bias);
    for (size_t c = 0; c < bias.size(); ++c) bias[c] += old[c] * scale[c];
  }
  const bool biased = linear.bias || std::any_of(bias.begin(), bias.end(), [](double b) { return b != 0; });
  if (!biased) return rewrite.add(linear.node->attributes(), std::move(inputs));
  ir::Value* addend = rewrite.constant(channel_tensor(dtype, bias, 1, 0));
  if (!linear.node->is(OpKind::matmul)) {
    inputs.push_back(addend);
    return rewrite.add(linear.node->attributes(), std::move(inputs));
  }
  return rewrite.plus(rewrite.add(linear.node->attributes(), std::move(inputs)), addend);
}

bool is_derived(const Linear& linear) { return is_derived(linear.node->input(1)) || is_derived(linear.node->input(2)); }

ir::Value* add_derived(Rewrite& rewrite, const Linear& linear, const Known& scale, const Known& shift) {
  const std::optional<Dims> dims = factor_dims(linear);
  if (!dims) return nullptr;
  WeightsMath math;
  const DType dtype = linear.weights->dtype();
  std::vector<ir::Value*> inputs = {linear.node->input(0), linear.node->input(1)};
  if (scale.content.defined()) {
    const Known factor = scale.content.volume() == 1 ? scale : math.reshape(scale, *dims);
    const Known wide = math.cast(linear.node->input(1)->known(), DType::f64);
    inputs[1] = rewrite.known(math.finish(math.cast(math.binary(ElementwiseOp::mul, wide, factor), dtype)));
  }
  rewrite.absorb(linear.node);
  Known bias = shift;
  if (linear.bias) {
    Known old = math.cast(linear.node->input(2)->known(), DType::f64);
    if (scale.content.defined()) old = math.binary(ElementwiseOp::mul, old, scale);
    bias = shift.content.defined() ? math.binary(ElementwiseOp::add, shift, old) : old;
  }
  if (!bias.content.defined()) return rewrite.add(linear.node->attributes(), std::move(inputs));
  if (!math.error() && bias.content.volume() != linear.channels)  // one number for all of them
    bias =
        math.binary(ElementwiseOp::add, bias,
                    {*channel_tensor(DType::f64, std::vector<double>(static_cast<size_t>(linear.channels)), 1, 0), {}});
  ir::Value* addend = rewrite.known(math.finish(math.cast(bias, dtype)));
  if (!linear.node->is(OpKind::matmul)) {
    inputs.push_back(addend);
    return rewrite.add(linear.node->attributes(), std::move(inputs));
  }
  return rewrite.plus(rewrite.add(linear.node->attributes(), std::move(inputs)), addend);
}

std::optional<std::vector<double>> along_axis(const ir::Value* constant, const ir::Value* value, size_t axis) {
  const Tensor* tensor = constant->constant();
  if (!tensor || !varies_along(*tensor, value, axis)) return std::nullopt;
  std::vector<double> values = to_doubles(*tensor);
  if (values.size() == 1) values.resize(static_cast<size_t>(*value->shape()[axis].as_constant()), values[0]);
  return values;
}

std::optional<Known> known_along_axis(const ir::Value* constant, const ir::Value* value, size_t axis) {
  const Known known = constant->known();
  if (!known.content.defined() || !varies_along(known.content, value, axis)) return std::nullopt;
  WeightsMath math;
  Known values = math.reshape(math.cast(known, DType::f64), {known.content.volume()});
  return math.error() ? std::nullopt : std::optional(std::move(values));
}

Result<Tensor> channel_tensor(DType dtype, std::span<const double> values, int rank, size_t axis) {
  Dims dims(static_cast<size_t>(rank) - axis, 1);
  dims[0] = static_cast<int64_t>(values.size());
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(dtype, std::move(dims)));
  from_doubles(values, tensor);
  return tensor;
}

}  // namespace lathe
