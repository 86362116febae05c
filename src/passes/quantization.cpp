// SPDX-License-Identifier: Apache-2.0
#include "passes/quantization.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"
#include "passes/linear.h"
#include "passes/match.h"

namespace lathe {
namespace {

// Sums of products of 8-bit integers that i32 holds whatever the operands are, and what is added for zero points: of
// weights of i8, and of those that have zero points and so range from -255 to 255.
constexpr int64_t kMostProducts = (int64_t{1} << 31) / (256 * 128) - 1, kMostWideProducts = kMostProducts / 2;

// Whether a scale or zero point runs along one dimension of the weights at most: one number for each of its positions,
// or one.
std::optional<std::vector<double>> numbers_of_weights(const Dequantized& w, size_t operand, size_t dimension) {
  const ir::Value* value = w.node->input(operand);
  if (!value->constant()) return std::nullopt;
  if (value->constant()->volume() == 1) return to_doubles(*value->constant());
  return along_axis(value, w.integers, dimension);
}

bool is_wide(const Dequantized& w) { return w.zero_point || w.integers->dtype() == DType::u8; }

// How far the zero points of weights are from the middle of their levels, at the most.
double farthest_zero(const Dequantized& w, size_t dimension) {
  const double middle = w.integers->dtype() == DType::u8 ? 128 : 0;
  if (!w.zero_point) return middle;
  double farthest = 0;
  for (const double zero : numbers_of_weights(w, 2, dimension).value_or(std::vector<double>{0, 255}))
    farthest = std::max(farthest, std::abs(zero - middle));
  return farthest;
}

// Of the weights: output channels.
size_t channels_of_matmul(const ir::Node& node, const Dequantized& w) {
  return static_cast<size_t>(w.integers->rank() - (node.attrs<MatmulAttrs>().transpose_b ? 2 : 1));
}

std::optional<int64_t> products_of_convolution(const ir::Value* w) {
  Expr taps = 1;
  for (size_t d = 1; d < w->shape().size(); ++d) taps *= w->shape()[d];
  return taps.as_constant();
}

// What a product needs of its operands; why not, or null.
const char* refusal_of_factors(const ir::Node& node, const Dequantized& x, const Dequantized& w, bool packs = false) {
  const auto& attrs = node.attrs<MatmulAttrs>();
  if (w.integers->rank() < 2 || x.integers->rank() < 2) return "an operand is a vector";
  if (attrs.transpose_a) return "the activations are transposed";
  // Others than weights are multiplied by kernels that do not pack them only where both run along K in memory.
  if (!packs && !w.integers->constant() && !attrs.transpose_b)
    return "both operands are computed, and do not run along K in memory";
  return nullptr;
}
const char* refusal_of_matmul(const ir::Node& node, const Dequantized& x, const Dequantized& w, bool packs) {
  if (const char* why = refusal_of_factors(node, x, w, packs)) return why;
  return x.integers->shape().back().is_constant() ? nullptr : "the length of its sums is open";
}

// Of sums of so many products x w, of which zero points take off p sum(w - q) and q sum(x), where x and w may be any
// levels. Where both do, CPUs add up what they take off before it is; GPUs take off what a product or its own sums have
// made in f32, which has all integers up to 2^24.
const char* refusal_of_sums(const Dequantized& x, const Dequantized& w, int64_t products, size_t dimension,
                            bool is_cpu) {
  constexpr double kMostI32 = 0x1p31, kMostF32 = 0x1p24, kMostWeight = 128;
  if (products > (is_wide(w) ? kMostWideProducts : kMostProducts)) return "its sums may exceed 32 bits";
  const double q = farthest_zero(w, dimension), count = static_cast<double>(products);
  const double most_x = x.integers->dtype() == DType::u8 ? 255 : 128, rows = q * most_x;
  const double p = x.zero_point ? std::abs(scalar_of(x.zero_point).value_or(255)) : 0, columns = p * (kMostWeight + q);
  if (is_cpu) return (rows + columns) * count < kMostI32 ? nullptr : "what its zero points take off may exceed 32 bits";
  const bool is_in_f32 = rows > 0 || (columns > 0 && !w.integers->constant());
  const double most = std::max(most_x * kMostWeight + columns, rows);
  return is_in_f32 && most * count > kMostF32 ? "what its zero points take off may exceed the integers of f32"
                                              : nullptr;
}

// What CPUs multiply: any 8-bit activations of one scale and one zero point. Constant weights are summed four by four:
// along K or, in convolutions with one filter for each channel, along the filter's columns. Where the channels of a
// convolution without groups are no multiple of four, they are padded to one. Matrices that are computed are brought
// into fours while running.
const char* refusal_of_cpu(const ir::Node& node, const Dequantized& w) {
  if (!w.integers->constant()) return node.is(OpKind::convolution) ? "the weights are computed" : nullptr;
  const Dims& dims = w.integers->constant()->dims();
  if (!node.is(OpKind::convolution)) {
    const bool transposed = node.attrs<MatmulAttrs>().transpose_b;
    if (dims.size() != 2) return "the weights are no matrix";
    if (dims[transposed ? 1 : 0] % 4 != 0) return "the length of its sums is no multiple of 4";
    return dims[transposed ? 0 : 1] > 1 ? nullptr : "it has one output channel";
  }
  const int64_t groups = node.attrs<ConvolutionAttrs>().groups;
  const bool depthwise = groups > 1 && dims[0] == groups && dims[1] == 1;
  if (dims.size() > 5) return "it has more than three spatial dimensions";
  if (dims[0] <= 1) return "it has one output channel";
  if (groups > 1 && dims[1] % 4 != 0 && !depthwise) return "the channels of a group are no multiple of 4";
  if (depthwise && farthest_zero(w, 0) > 0) return "each channel's filter has a zero point, which costs another filter";
  return groups == 1 && dims[1] == 1 ? "it has one input channel" : nullptr;
}

// Levels of one scale and one zero point. What a convolution is padded with is the zero point: CPUs copy it to where it
// must lie, elsewhere the sums are corrected where an image ends.
const char* refusal_of_activations(const ir::Node& node, const Dequantized& x, const PassContext& context) {
  const bool is_cpu = context.arithmetic.weighted_products;
  if (!is_cpu && x.integers->dtype() != DType::i8) return "the activations are not i8";
  if (x.scale->volume() != 1) return "the activations have several scales";
  if (!x.zero_point) return nullptr;
  if (!scalar_of(x.zero_point)) return "the activations have several zero points";
  if (!node.is(OpKind::convolution) || !is_padded(node)) return nullptr;
  if (node.attrs<ConvolutionAttrs>().padding_mode != PaddingMode::explicit_round_down)
    return "the activations have a zero point, and sizes decide where the padding lies";
  const Shape& image = x.integers->shape();
  const bool is_known =
      std::all_of(image.begin() + 2, image.end(), [](const Expr& size) { return size.is_constant(); });
  return is_cpu || is_known ? nullptr : "the activations have a zero point, and the sizes of the image are open";
}

// Of 8-bit floats, whose sums have no limit.
const char* refusal_of_float8(const ir::Node& node, const Dequantized& x, const Dequantized& w,
                              const PassContext& context) {
  if (x.integers->dtype() != w.integers->dtype()) return "its operands are of two types";
  if (node.is(OpKind::convolution)) return "convolutions of 8-bit floats are multiplied as wide ones";
  if (x.scale->volume() != 1) return "the activations have several scales";
  if (x.zero_point || w.zero_point) return "an operand has a zero point";
  return refusal_of_factors(node, x, w);
}

// Of dequantised operands; null where kernels of the target multiply their levels.
const char* refusal_of(const ir::Node& node, const Dequantized& x, const Dequantized& w, const PassContext& context) {
  if (is_factor_float8(x.integers->dtype()) || is_factor_float8(w.integers->dtype()))
    return refusal_of_float8(node, x, w, context);
  if (!context.arithmetic.integer_products) return "the target multiplies floats only";
  const bool is_cpu = context.arithmetic.weighted_products;
  if (!is_byte_integer(x.integers->dtype()) || !is_byte_integer(w.integers->dtype()))
    return "its operands are no integers of 8 bits";
  if (!is_cpu && !w.integers->constant() && w.integers->dtype() != DType::i8)
    return "the weights are computed, and not i8";
  if (const char* why = refusal_of_activations(node, x, context)) return why;
  if (is_cpu)
    if (const char* why = refusal_of_cpu(node, w)) return why;
  const bool convolution = node.is(OpKind::convolution);
  if (const char* why = convolution ? nullptr : refusal_of_matmul(node, x, w, is_cpu)) return why;
  const std::optional<int64_t> products =
      convolution ? products_of_convolution(w.integers) : x.integers->shape().back().as_constant();
  return refusal_of_sums(x, w, products.value_or(kMostProducts + 1), convolution ? 0 : channels_of_matmul(node, w),
                         is_cpu);
}

}  // namespace

bool are_multiplied(DType levels, const Arithmetic& arithmetic) {
  return is_factor_float8(levels) ? arithmetic.float8_products : arithmetic.integer_products && is_byte_integer(levels);
}

std::optional<Dequantized> dequantized(const ir::Value* value) {
  const ir::Node* node = made_by(value, OpKind::dequantize);
  if (!node || (is_storage_only(node->input(0)->dtype()) && !is_factor_float8(node->input(0)->dtype())) ||
      !node->attrs<DequantizeAttrs>().blocks.empty())
    return std::nullopt;
  Dequantized result{node, node->input(0), node->input(1)->constant(), node->input(2)};
  if (!result.scale) return std::nullopt;
  for (double scale : to_doubles(*result.scale))
    if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  return result;
}

bool is_padded(const ir::Node& convolution) {
  const auto& attrs = convolution.attrs<ConvolutionAttrs>();
  const auto pads = [](int64_t pad) { return pad != 0; };
  return attrs.padding_mode != PaddingMode::explicit_round_down || std::ranges::any_of(attrs.pads_begin, pads) ||
         std::ranges::any_of(attrs.pads_end, pads);
}

std::optional<QuantizedProduct> quantized_product(const ir::Node& node, const PassContext& context, std::string* why) {
  const auto refuse = [&](const char* reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  const bool convolution = node.is(OpKind::convolution);
  if (!convolution && !node.is(OpKind::matmul)) return std::nullopt;
  const std::optional<Dequantized> x = dequantized(node.input(0)), w = dequantized(node.input(1));
  if (!x) return refuse("the activations are not quantised, or not by constant scales of the whole tensor");
  if (is_factor_float8(x->integers->dtype()) && !context.arithmetic.float8_products)
    return refuse("the target multiplies no 8-bit floats");
  if (!w) return refuse("the weights are not quantised, or not by constant scales");
  if (const char* reason = refusal_of(node, *x, *w, context)) return refuse(reason);
  const size_t dimension = convolution ? 0 : channels_of_matmul(node, *w);
  std::optional<std::vector<double>> scale = numbers_of_weights(*w, 1, dimension);
  if (!scale) return refuse("the scales of the weights are not those of output channels");
  for (double& each : *scale) each *= x->scale->at_double(0);
  const size_t axis = convolution ? 1 : static_cast<size_t>(node.output()->rank()) - 1;
  QuantizedProduct product{*x, *w, *std::move(scale), axis, dimension};
  if (!w->zero_point) return product;
  const std::optional<std::vector<double>> zeros = numbers_of_weights(*w, 2, dimension);
  if (!zeros) return refuse("the zero points of the weights are not those of output channels");
  product.zeros.assign(zeros->begin(), zeros->end());
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

bool is_lookup(const ir::Node& node) {
  return node.is(OpKind::gather) && node.input(0)->shape() == Shape{256} && is_byte_integer(node.input(0)->dtype()) &&
         is_byte_integer(node.input(1)->dtype());
}

bool sums_windows(const ir::Node& node) {
  if (node.is(OpKind::pooling)) return node.attrs<PoolingAttrs>().op == PoolingOp::average;
  return node.is(OpKind::resize) && node.attrs<ResizeAttrs>().mode != ResizeMode::nearest;
}

bool gives_elements(const ir::Node& node) {
  if (node.num_outputs() != 1) return false;
  if (node.is(OpKind::resize)) {
    const auto& attrs = node.attrs<ResizeAttrs>();
    return attrs.mode == ResizeMode::nearest && attrs.coordinates != CoordinateMode::tf_crop_and_resize;
  }
  if (node.is(OpKind::pooling)) return node.attrs<PoolingAttrs>().op == PoolingOp::max;
  return unchanged_operands(node) == std::vector<const ir::Value*>{node.input(0)};
}

bool same_contents(const ir::Value* a, const ir::Value* b) {
  if (a == b) return true;
  return a && b && a->constant() && b->constant() && identical(*a->constant(), *b->constant());
}

}  // namespace lathe
