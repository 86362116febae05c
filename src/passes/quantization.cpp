// SPDX-License-Identifier: Apache-2.0
#include "passes/quantization.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"
#include "passes/linear.h"
#include "passes/match.h"

namespace lathe {
namespace {

// Sums of products of 8-bit integers that i32 holds whatever the operands are, and what is added for zero points.
constexpr int64_t kMostProducts = (int64_t{1} << 31) / (256 * 128) - 1;

// Whether the scale runs along one dimension of the weights at most: one number for each of its positions, or one.
std::optional<std::vector<double>> weight_scales(const Dequantized& w, size_t dimension) {
  if (w.zero_point) return std::nullopt;
  if (w.scale->volume() == 1) return to_doubles(*w.scale);
  return along_axis(w.node->input(1), w.integers, dimension);
}

std::optional<int64_t> products_of_convolution(const ir::Value* w) {
  Expr taps = 1;
  for (size_t d = 1; d < w->shape().size(); ++d) taps *= w->shape()[d];
  return taps.as_constant();
}

// Other operands than weights are multiplied by integer kernels only where both run along K in memory.
std::optional<size_t> matmul_channels(const ir::Node& node, const Dequantized& x, const Dequantized& w) {
  const auto& attrs = node.attrs<MatmulAttrs>();
  const int rank = w.integers->rank();
  if (rank < 2 || x.integers->rank() < 2 || attrs.transpose_a) return std::nullopt;
  if (!w.integers->constant() && !attrs.transpose_b) return std::nullopt;
  const Expr& k = x.integers->shape().back();
  if (!k.is_constant() || *k.as_constant() > kMostProducts) return std::nullopt;
  return static_cast<size_t>(rank - (attrs.transpose_b ? 2 : 1));
}

// What CPUs multiply: any 8-bit activations of one scale and one zero point by constant weights. Products are summed
// four by four: along K or, in convolutions with one filter for each channel, along the filter's columns. Where the
// channels of a convolution without groups are no multiple of four, they are padded to one. A convolution is padded
// with the zero point, so that where its padding lies must be known.
bool is_weighted(const ir::Node& node, const Dequantized& x, const Dequantized& w) {
  if (x.scale->volume() != 1 || (x.zero_point && !scalar_of(x.zero_point)) || !w.integers->constant() ||
      !is_byte_integer(x.integers->dtype()))
    return false;
  const Dims& dims = w.integers->constant()->dims();
  if (!node.is(OpKind::convolution)) {
    const bool transposed = node.attrs<MatmulAttrs>().transpose_b;
    return dims.size() == 2 && dims[transposed ? 1 : 0] % 4 == 0 && dims[transposed ? 0 : 1] > 1;
  }
  const auto& attrs = node.attrs<ConvolutionAttrs>();
  if (x.zero_point && attrs.padding_mode != PaddingMode::explicit_round_down) return false;
  const bool depthwise = attrs.groups > 1 && dims[0] == attrs.groups && dims[1] == 1;
  return dims.size() <= 5 && (dims[1] % 4 == 0 || (attrs.groups == 1 && dims[1] > 1) || depthwise) && dims[0] > 1;
}

// zero * the sum of the weights that each output channel has: what the products are too large by where every level of
// x is.
std::vector<int32_t> sums_of_weights(const Tensor& w, size_t dimension, double zero) {
  int64_t inner = 1;
  for (size_t d = dimension + 1; d < w.dims().size(); ++d) inner *= w.dims()[d];
  std::vector<int32_t> sums(static_cast<size_t>(w.dims()[dimension]));
  const int8_t* weights = w.as<int8_t>();
  for (int64_t i = 0; i < w.volume(); ++i)
    sums[static_cast<size_t>(i / inner % w.dims()[dimension])] += static_cast<int32_t>(zero) * weights[i];
  return sums;
}

}  // namespace

std::optional<Dequantized> dequantized(const ir::Value* value) {
  const ir::Node* node = made_by(value, OpKind::dequantize);
  if (!node || is_storage_only(node->input(0)->dtype()) || !node->attrs<DequantizeAttrs>().blocks.empty())
    return std::nullopt;
  Dequantized result{node, node->input(0), node->input(1)->constant(), node->input(2)};
  if (!result.scale) return std::nullopt;
  for (double scale : to_doubles(*result.scale))
    if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  return result;
}

std::optional<QuantizedProduct> quantized_product(const ir::Node& node, const PassContext& context) {
  const bool convolution = node.is(OpKind::convolution);
  if (!convolution && !node.is(OpKind::matmul)) return std::nullopt;
  const std::optional<Dequantized> x = dequantized(node.input(0)), w = dequantized(node.input(1));
  if (!x || !w || w->integers->dtype() != DType::i8) return std::nullopt;
  const bool fits = context.arithmetic.weighted_products ? is_weighted(node, *x, *w)
                                                         : x->is_uniform() && x->integers->dtype() == DType::i8;
  if (!fits) return std::nullopt;
  size_t dimension = 0;  // of the weights: output channels
  if (convolution) {
    if (products_of_convolution(w->integers).value_or(kMostProducts + 1) > kMostProducts) return std::nullopt;
  } else {
    const std::optional<size_t> channels = matmul_channels(node, *x, *w);
    if (!channels) return std::nullopt;
    dimension = *channels;
  }
  std::optional<std::vector<double>> scale = weight_scales(*w, dimension);
  if (!scale) return std::nullopt;
  for (double& each : *scale) each *= x->scale->at_double(0);
  const size_t axis = convolution ? 1 : static_cast<size_t>(node.output()->rank()) - 1;
  QuantizedProduct product{*x, *w, *std::move(scale), {}, axis};
  if (x->zero_point)
    product.zero_point = sums_of_weights(*w->integers->constant(), dimension, scalar_of(x->zero_point).value());
  return product;
}

// A level l, counted from the zero point, becomes l * s and that divided by s again, each rounded once. While no
// product leaves the range of normal numbers, l comes back within l (2 u + u^2), u = 2 ** -digits: nearest to l when
// that is less than a half. (f32 keeps 16 bits and f16 keeps 8; bf16 turns the level 123 of the scale 1.0546875 into
// 124.)
bool keeps_levels(double scale, DType integers, DType floats) {
  const std::optional<IntegerRange> range = quantized_range(integers);
  if (!range) return false;
  int digits = 0;
  double least = 0, most = 0;
  const auto format = [&](int count, double smallest, double largest) {
    digits = count, least = smallest, most = largest;
  };
  switch (floats) {
    case DType::f64:
      format(53, 0x1p-1022, 0x1.fffffffffffffp1023);
      break;
    case DType::f32:
      format(24, 0x1p-126, 0x1.fffffep127);
      break;
    case DType::f16:
      format(11, 0x1p-14, 65504);
      break;
    default:
      return false;
  }
  const double farthest = range->high - range->low, u = std::ldexp(1.0, -digits), magnitude = std::fabs(scale);
  return magnitude >= least && magnitude <= most / farthest && farthest * (2 * u + u * u) < 0.5;
}

bool gives_elements(const ir::Node& node) {
  if (node.num_outputs() != 1) return false;
  if (node.is(OpKind::pooling)) return node.attrs<PoolingAttrs>().op == PoolingOp::max;
  return unchanged_operands(node) == std::vector<const ir::Value*>{node.input(0)};
}

bool same_contents(const ir::Value* a, const ir::Value* b) {
  if (a == b) return true;
  return a && b && a->constant() && b->constant() && identical(*a->constant(), *b->constant());
}

}  // namespace lathe
