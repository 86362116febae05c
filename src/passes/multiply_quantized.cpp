// SPDX-License-Identifier: Apache-2.0
// Products of dequantised operands become products of their integers; one dequantisation of the sums follows.
#include <algorithm>

#include "base/divide.h"
#include "ops/windows.h"
#include "passes/linear.h"
#include "passes/match.h"
#include "passes/pins.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

// A bias of a convolution, laid along its channels.
ir::Value* channel_bias(Rewrite& r, ir::Value* bias) {
  const int rank = r.output()->rank();
  if (const Tensor* content = bias->constant()) {
    Dims dims(static_cast<size_t>(rank) - 1, 1);
    dims[0] = content->dims()[0];
    return r.constant(content->reshaped(dims));
  }
  Ints dims(static_cast<size_t>(rank) - 1, 1);
  dims[0] = -1;
  return r.reshape(bias, dims);
}

// Sums of the weights for each output channel and, of convolutions, each place of the filter.
struct SumsOfWeights {
  int64_t channels = 1, taps = 1;
  std::vector<int64_t> sums;  // [channels][taps]
};

SumsOfWeights sums_of_weights(const QuantizedProduct& product, const ir::Node& node) {
  const Tensor& w = *product.w.integers->constant();
  SumsOfWeights result;
  result.channels = w.dims()[product.dimension];
  for (size_t d = 2; node.is(OpKind::convolution) && d < w.dims().size(); ++d) result.taps *= w.dims()[d];
  int64_t inner = 1;
  for (size_t d = product.dimension + 1; d < w.dims().size(); ++d) inner *= w.dims()[d];
  result.sums.resize(static_cast<size_t>(result.channels * result.taps));
  const int8_t* weights = w.as<int8_t>();
  for (int64_t i = 0; i < w.volume(); ++i)
    result.sums[static_cast<size_t>(i / inner % result.channels * result.taps + i % result.taps)] += weights[i];
  return result;
}

// A zero point of the sums, which broadcasts to them.
Result<Tensor> levels_of_sums(const std::vector<int64_t>& values, Dims dims) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(DType::i32, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) tensor.mutable_as<int32_t>()[i] = static_cast<int32_t>(values[i]);
  return tensor;
}

// zero * the sum of the weights that each output channel has: what the products are too large by where every level of
// x is.
Result<Tensor> zero_point_of(const QuantizedProduct& product, const ir::Node& node, int64_t zero) {
  const SumsOfWeights weights = sums_of_weights(product, node);
  std::vector<int64_t> values(static_cast<size_t>(weights.channels));
  for (size_t i = 0; i < weights.sums.size(); ++i)
    values[i / static_cast<size_t>(weights.taps)] += zero * weights.sums[i];
  Dims dims(static_cast<size_t>(node.output()->rank()) - product.axis, 1);
  dims[0] = weights.channels;
  return levels_of_sums(values, std::move(dims));
}

// The same for each place of the result of a convolution that is padded with zeros: those weights count that meet the
// image there.
Result<Tensor> zero_points_where_padded(const QuantizedProduct& product, const ir::Node& node, int64_t zero) {
  const SumsOfWeights weights = sums_of_weights(product, node);
  const auto sizes = [](const Shape& shape) {
    Dims dims;
    for (size_t d = 2; d < shape.size(); ++d) dims.push_back(*shape[d].as_constant());
    return dims;
  };
  const Dims kernel = sizes(product.w.integers->shape()), output = sizes(node.output()->shape());
  LATHE_ASSIGN(const WindowAttrs attrs, window_attrs(node.attrs<ConvolutionAttrs>(), kernel.size()));
  const std::vector<WindowAxis> axes = window_axes(sizes(product.x.integers->shape()), output, kernel, attrs);
  int64_t places = 1;
  for (const int64_t size : output) places *= size;
  std::vector<int64_t> values(static_cast<size_t>(weights.channels * places));
  Ints tap(kernel.size(), 0);
  for (int64_t t = 0; t < weights.taps; ++t) {
    for_each_run(axes, tap, [&](int64_t, int64_t first, int64_t count, int64_t) {
      for (int64_t c = 0; c < weights.channels; ++c)
        for (int64_t i = 0; i < count; ++i)
          values[static_cast<size_t>(c * places + first + i)] +=
              zero * weights.sums[static_cast<size_t>(c * weights.taps + t)];
    });
    for (size_t d = tap.size(); d-- > 0 && ++tap[d] == kernel[d];) tap[d] = 0;
  }
  Dims dims{weights.channels};
  dims.insert(dims.end(), output.begin(), output.end());
  return levels_of_sums(values, std::move(dims));
}

// How much is added at the beginning of each dimension of an image, then at the ends.
struct Pads {
  explicit Pads(size_t rank) : values(2 * rank, 0), rank(rank) {}
  int64_t& channels_end() { return values[rank + 1]; }
  void take_from(ConvolutionAttrs& attrs) {
    std::copy(attrs.pads_begin.begin(), attrs.pads_begin.end(), values.begin() + 2);
    std::copy(attrs.pads_end.begin(), attrs.pads_end.end(), values.begin() + static_cast<ptrdiff_t>(rank) + 2);
    attrs.pads_begin.clear();
    attrs.pads_end.clear();
  }
  bool is_none() const {
    return std::all_of(values.begin(), values.end(), [](int64_t pad) { return pad == 0; });
  }
  Ints values;
  size_t rank;
};

// A convolution of the integers. On CPUs, what it has beyond their ends are levels that stand for 0, where its own
// padding would be zeros; and as kernels multiply four channels at once, channels come in fours, of which the last are
// multiplied by 0.
Result<ir::Value*> convolution_of(Rewrite& r, const QuantizedProduct& product) {
  ConvolutionAttrs attrs = r.node->attrs<ConvolutionAttrs>();
  ir::Value *x = product.x.integers, *w = product.w.integers, *zero_point = product.x.zero_point;
  Pads pads(static_cast<size_t>(x->rank()));
  if (!r.context.arithmetic.weighted_products) return r.add(attrs, {x, w});
  if (attrs.groups == 1) {
    pads.channels_end() = round_up<int64_t>(w->constant()->dims()[1], 4) - w->constant()->dims()[1];
    if (!pads.is_none()) {
      const std::vector<Tensor> operands{*w->constant(), *r.ints(pads.values)->constant()};
      LATHE_ASSIGN(std::vector<Tensor> wider, run_op(PadAttrs{}, operands, 1));
      w = r.constant(wider[0]);
    }
  }
  if (attrs.padding_mode == PaddingMode::explicit_round_down && (zero_point || !pads.is_none())) pads.take_from(attrs);
  if (!pads.is_none()) {
    std::vector<ir::Value*> operands{x, r.ints(pads.values)};
    if (zero_point) operands.push_back(r.constant(zero_point->constant()->reshaped({})));
    x = r.add(PadAttrs{}, std::move(operands));
  }
  return r.add(attrs, {x, w});
}

Result<bool> multiply(Rewrite& r) {
  if (keeps_floats(*r.node, r.context)) return false;
  const std::optional<QuantizedProduct> product = quantized_product(*r.node, r.context);
  if (!product) return false;
  r.context.notes.erase(r.output()->name());
  r.absorb(product->x.node);
  r.absorb(product->w.node);
  ir::Value* sums = nullptr;
  if (r.node->is(OpKind::convolution)) {
    LATHE_ASSIGN(sums, convolution_of(r, *product));
  } else {
    sums = r.add(r.node->attributes(), {product->x.integers, product->w.integers});
  }
  Result<Tensor> scale = product->scale.size() == 1
                             ? Tensor::of<float>({}, {static_cast<float>(product->scale[0])})
                             : channel_tensor(DType::f32, product->scale, r.output()->rank(), product->axis);
  ir::Value* factor = r.constant(std::move(scale));
  if (sums->dtype() == DType::f32) return r.finish(r.cast(r.mul(sums, factor), r.output()->dtype()));
  DequantizeAttrs attrs;
  attrs.to = r.output()->dtype();
  std::vector<ir::Value*> operands = {sums, factor};
  if (product->x.zero_point) {
    const auto zero = static_cast<int64_t>(scalar_of(product->x.zero_point).value());
    const bool pads_with_zeros =
        r.node->is(OpKind::convolution) && is_padded(*r.node) && !r.context.arithmetic.weighted_products;
    operands.push_back(r.constant(pads_with_zeros ? zero_points_where_padded(*product, *r.node, zero)
                                                  : zero_point_of(*product, *r.node, zero)));
  }
  ir::Value* result = r.add(attrs, std::move(operands));
  if (ir::Value* bias = r.node->is(OpKind::convolution) ? r.input(2) : nullptr)
    result = r.plus(result, channel_bias(r, bias));
  return r.finish(result);
}

// A number for each column, of what holds that or one for all; null of what holds others.
ir::Value* by_columns(Rewrite& r, ir::Value* value, int64_t columns) {
  const std::optional<int64_t> count = volume(value->shape()).as_constant();
  if (count == columns && value->rank() > 0 && value->shape().back() == Expr(columns))
    return value->rank() == 1 ? value : r.reshape(value, Ints{-1});
  if (count != 1) return nullptr;
  Result<Tensor> ones = Tensor::allocate(value->dtype(), {columns});
  if (ones) from_doubles(std::vector<double>(static_cast<size_t>(columns), 1), *ones);
  return r.mul(r.reshape(value, Ints{}), r.constant(std::move(ones)));
}

// Sums that become floats as one dequantisation, which belongs to the product: scales and zero points of dynamic
// quantisation are computed.
Result<bool> dequantize_sums(Rewrite& r) {
  if (!r.context.arithmetic.weighted_products || r.node->attrs<ElementwiseAttrs>().op != ElementwiseOp::mul)
    return false;
  const ir::Node* cast = made_by(r.input(0), OpKind::cast);
  ir::Value* scale = r.input(1);
  if (!cast) cast = made_by(r.input(1), OpKind::cast), scale = r.input(0);
  if (!cast || cast->output()->dtype() != DType::f32 || !cast->output()->has_single_use()) return false;
  ir::Value *sums = cast->input(0), *zero_point = nullptr;
  const ir::Node* minus = made_by(sums, ElementwiseOp::sub);
  if (minus && sums->has_single_use()) sums = minus->input(0), zero_point = minus->input(1);
  const ir::Node* product = sums->producer();
  if (!product || !product->is(OpKind::matmul) || !is_byte_integer(product->input(0)->dtype()) ||
      sums->dtype() != DType::i32 || !sums->has_single_use() || !same_shape(sums, r.output()))
    return false;
  const std::optional<int64_t> columns = sums->shape().back().as_constant();
  if (!columns) return false;
  std::vector<ir::Value*> operands = {sums, by_columns(r, scale, *columns)};
  if (zero_point) operands.push_back(by_columns(r, zero_point, *columns));
  if (std::ranges::find(operands, nullptr) != operands.end()) return false;
  r.absorb(cast);
  if (zero_point) r.absorb(minus);
  return r.finish(r.add(DequantizeAttrs{}, std::move(operands)));
}

// In a quantised network: why products are of floats. Other passes dequantise constants when this one has left them:
// then what an earlier run has found holds.
void note_float_products(const ir::Graph& graph, PassContext& context) {
  const bool is_quantized =
      std::ranges::any_of(graph.nodes(), [](const auto& node) { return node->has_trait(kQuantization); });
  if (!is_quantized) return;
  for (const auto& node : graph.nodes()) {
    if ((!node->is(OpKind::convolution) && !node->is(OpKind::matmul)) || !is_floating(node->output()->dtype()) ||
        !is_floating(node->input(0)->dtype()))
      continue;
    std::string why = "the target multiplies floats only";
    if (context.arithmetic.integer_products || context.arithmetic.float8_products) {
      why = "it is told to compute in floats";
      if (!keeps_floats(*node, context)) quantized_product(*node, context, &why);
    }
    const bool is_candidate = dequantized(node->input(0)) && dequantized(node->input(1));
    std::string& note = context.notes[node->output()->name()];
    if (is_candidate || note.empty()) note = "multiplies floats: " + why;
  }
}

}  // namespace

Result<bool> multiply_quantized(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"conv(dequantize(p, s), dequantize(q, t), b) = dequantize(conv(p, q), s * t) + b", OpKind::convolution,
       multiply},
      {"matmul(dequantize(p, s), dequantize(q, t)) = dequantize(matmul(p, q), s * t)", OpKind::matmul, multiply},
      {"cast(matmul(p, q) - z) * s = dequantize(matmul(p, q), s, z)", OpKind::elementwise, dequantize_sums},
  };
  LATHE_ASSIGN(const bool changed, apply_rules(graph, context, rules));
  note_float_products(graph, context);
  return changed;
}

}  // namespace lathe
