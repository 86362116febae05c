// SPDX-License-Identifier: Apache-2.0
#include "passes/zero_points.h"

#include <algorithm>

#include "base/divide.h"
#include "ops/windows.h"
#include "passes/linear.h"
#include "passes/match.h"

namespace lathe {
namespace {

// Levels of u8 counted from 128, and their zero points.
Result<Tensor> signed_levels(const Tensor& levels, std::vector<int64_t>& zeros) {
  if (levels.dtype() == DType::i8) return levels;
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::i8, levels.dims()));
  std::transform(levels.as<uint8_t>(), levels.as<uint8_t>() + levels.volume(), result.mutable_as<int8_t>(),
                 [](uint8_t level) { return static_cast<int8_t>(level - 128); });
  if (zeros.empty()) zeros = {0};
  for (int64_t& zero : zeros) zero -= 128;
  if (std::ranges::all_of(zeros, [](int64_t zero) { return zero == 0; })) zeros.clear();
  return result;
}

int64_t zero_of(const std::vector<int64_t>& zeros, int64_t channel) {
  return zeros.empty() ? 0 : zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

// Sums of w - q for each output channel and, of convolutions, each place of the filter.
struct SumsOfWeights {
  int64_t channels = 1, taps = 1;
  std::vector<int64_t> sums;  // [channels][taps]
};

SumsOfWeights sums_of_weights(const Tensor& w, const std::vector<int64_t>& zeros, size_t dimension, bool convolution) {
  SumsOfWeights result;
  result.channels = w.dims()[dimension];
  for (size_t d = 2; convolution && d < w.dims().size(); ++d) result.taps *= w.dims()[d];
  int64_t inner = 1;
  for (size_t d = dimension + 1; d < w.dims().size(); ++d) inner *= w.dims()[d];
  result.sums.resize(static_cast<size_t>(result.channels * result.taps));
  const int8_t* weights = w.as<int8_t>();
  for (int64_t i = 0; i < w.volume(); ++i) {
    const int64_t channel = i / inner % result.channels;
    result.sums[static_cast<size_t>(channel * result.taps + i % result.taps)] += weights[i] - zero_of(zeros, channel);
  }
  return result;
}

Result<Tensor> integers(const std::vector<int64_t>& values, Dims dims) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(DType::i32, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) tensor.mutable_as<int32_t>()[i] = static_cast<int32_t>(values[i]);
  return tensor;
}

// p * the sum of the weights that each output channel has: what the products are too large by where every level of x
// is.
Result<Tensor> zero_point_of(const SumsOfWeights& weights, const QuantizedProduct& product, int64_t p, int rank) {
  std::vector<int64_t> values(static_cast<size_t>(weights.channels));
  for (size_t i = 0; i < weights.sums.size(); ++i) values[i / static_cast<size_t>(weights.taps)] += p * weights.sums[i];
  Dims dims(static_cast<size_t>(rank) - product.axis, 1);
  dims[0] = weights.channels;
  return integers(values, std::move(dims));
}

// The same for each place of the result of a convolution that is padded with zeros: those weights count that meet the
// image there.
Result<Tensor> zero_points_where_padded(const SumsOfWeights& weights, const QuantizedProduct& product,
                                        const ir::Node& node, int64_t p) {
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
              p * weights.sums[static_cast<size_t>(c * weights.taps + t)];
    });
    for (size_t d = tap.size(); d-- > 0 && ++tap[d] == kernel[d];) tap[d] = 0;
  }
  Dims dims{weights.channels};
  dims.insert(dims.end(), output.begin(), output.end());
  return integers(values, std::move(dims));
}

Result<Tensor> ones_of(Dims dims) {
  LATHE_ASSIGN(Tensor ones, Tensor::allocate(DType::i8, std::move(dims)));
  std::fill_n(ones.mutable_as<int8_t>(), ones.volume(), int8_t{1});
  return ones;
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

// On CPUs, what a convolution has beyond its image's ends are levels that stand for 0, where its own padding would be
// zeros; and as kernels multiply four channels at once, channels come in fours, of which the last are multiplied by 0.
Result<> pad_factors(Rewrite& r, const QuantizedProduct& product, IntegerFactors& factors) {
  auto& attrs = static_cast<ConvolutionAttrs&>(*factors.attributes);
  ir::Value* zero_point = product.x.zero_point;
  Pads pads(static_cast<size_t>(factors.x->rank()));
  if (attrs.groups == 1) {
    const int64_t channels = factors.w->constant()->dims()[1];
    pads.channels_end() = round_up<int64_t>(channels, 4) - channels;
    for (ir::Value** weights : {&factors.w, &factors.ones}) {
      if (pads.is_none() || !*weights) continue;
      const std::vector<Tensor> operands{*(*weights)->constant(), *r.ints(pads.values)->constant()};
      LATHE_ASSIGN(std::vector<Tensor> wider, run_op(PadAttrs{}, operands, 1));
      *weights = r.constant(wider[0]);
    }
  }
  if (attrs.padding_mode == PaddingMode::explicit_round_down && (zero_point || !pads.is_none())) pads.take_from(attrs);
  if (pads.is_none()) return {};
  std::vector<ir::Value*> operands{factors.x, r.ints(pads.values)};
  if (zero_point) operands.push_back(r.constant(zero_point->constant()->reshaped({})));
  factors.x = r.add(PadAttrs{}, std::move(operands));
  return {};
}

// sum(x), of each row of the result.
ir::Value* sums_of_x(Rewrite& r, const IntegerFactors& factors) {
  if (r.node->is(OpKind::convolution)) return r.add(*factors.attributes, {factors.x, factors.ones});
  return r.matmul(factors.x, factors.ones);
}

ir::Value* channel_numbers(Rewrite& r, const std::vector<int64_t>& zeros, DType dtype, size_t axis) {
  const std::vector<double> values(zeros.begin(), zeros.end());
  if (values.size() == 1) return r.scalar(values[0], dtype);
  return r.constant(channel_tensor(dtype, values, r.output()->rank(), axis));
}

// sum(w - q), of each column of a matrix that is computed.
ir::Value* sums_of_w(Rewrite& r, const QuantizedProduct& product, const IntegerFactors& factors) {
  const int64_t k = *factors.x->shape().back().as_constant();
  const bool transposed = r.node->attrs<MatmulAttrs>().transpose_b;
  ir::Value* sums = r.matmul(r.constant(ones_of({1, k})), factors.w, {.b = transposed});
  if (factors.zeros.empty()) return sums;
  std::vector<int64_t> zeros;
  for (const int64_t zero : factors.zeros) zeros.push_back(k * zero);
  return r.minus(sums, channel_numbers(r, zeros, DType::i32, product.axis));
}

// What zero points add to the sums: a number of each row times that of a column, and one of each column.
struct Terms {
  ir::Value* rows = nullptr;     // sum(x); null = none
  ir::Value* columns = nullptr;  // p * sum(w - q) of constants ...
  ir::Value* sums = nullptr;     // ... and sum(w - q) of others
  int64_t p = 0;
};

Result<Terms> terms_of(Rewrite& r, const QuantizedProduct& product, const IntegerFactors& factors) {
  Terms terms;
  if (!factors.zeros.empty()) terms.rows = sums_of_x(r, factors);
  if (!product.x.zero_point) return terms;
  terms.p = static_cast<int64_t>(scalar_of(product.x.zero_point).value());
  if (!product.w.integers->constant()) {
    terms.sums = sums_of_w(r, product, factors);
    return terms;
  }
  const bool convolution = r.node->is(OpKind::convolution);
  const SumsOfWeights weights = sums_of_weights(factors.weights, factors.zeros, product.dimension, convolution);
  const bool pads_with_zeros = convolution && is_padded(*r.node) && !r.context.arithmetic.weighted_products;
  terms.columns = r.constant(pads_with_zeros ? zero_points_where_padded(weights, product, *r.node, terms.p)
                                             : zero_point_of(weights, product, terms.p, r.output()->rank()));
  return terms;
}

}  // namespace

Result<IntegerFactors> integer_factors(Rewrite& r, const QuantizedProduct& product) {
  IntegerFactors factors{r.node->attributes().clone(), product.x.integers, product.w.integers, product.zeros};
  const bool convolution = r.node->is(OpKind::convolution);
  if (const Tensor* levels = factors.w->constant()) {
    LATHE_ASSIGN(factors.weights, signed_levels(*levels, factors.zeros));
    if (levels->dtype() != DType::i8) factors.w = r.constant(factors.weights);
  }
  if (!factors.zeros.empty()) {
    Dims dims = convolution ? factors.w->constant()->dims() : Dims{*factors.x->shape().back().as_constant(), 1};
    if (convolution && r.node->attrs<ConvolutionAttrs>().groups == 1) dims[0] = 1;
    factors.ones = r.constant(ones_of(std::move(dims)));
  }
  if (convolution && r.context.arithmetic.weighted_products) LATHE_TRY(pad_factors(r, product, factors));
  return factors;
}

Result<ir::Value*> dequantized_sums(Rewrite& r, const QuantizedProduct& product, const IntegerFactors& factors,
                                    Result<Tensor> scale_of_sums) {
  ir::Value* sums = r.add(*factors.attributes, {factors.x, factors.w});
  ir::Value* scale = r.constant(std::move(scale_of_sums));
  LATHE_ASSIGN(const Terms terms, terms_of(r, product, factors));
  DequantizeAttrs attrs;
  if (r.context.arithmetic.weighted_products) {
    attrs.to = r.output()->dtype();
    ir::Value* zero = terms.columns;
    if (terms.sums) zero = r.mul(terms.sums, r.scalar(static_cast<double>(terms.p), DType::i32));
    if (terms.rows) {
      ir::Value* rows = r.mul(terms.rows, channel_numbers(r, factors.zeros, DType::i32, product.axis));
      zero = zero ? r.plus(rows, zero) : rows;
    }
    std::vector<ir::Value*> operands{sums, scale};
    if (zero) operands.push_back(zero);
    return r.add(attrs, std::move(operands));
  }
  if (!terms.rows && !terms.sums) {
    attrs.to = r.output()->dtype();
    std::vector<ir::Value*> operands{sums, scale};
    if (terms.columns) operands.push_back(terms.columns);
    return r.add(attrs, std::move(operands));
  }
  // In f32, which holds such integers up to 2^24: sums are scaled last.
  std::vector<ir::Value*> operands{sums, r.scalar(1, DType::f32)};
  if (terms.columns) operands.push_back(terms.columns);
  ir::Value* result = r.add(attrs, std::move(operands));
  if (terms.sums) result = r.minus(result, r.scaled(r.cast(terms.sums, DType::f32), static_cast<double>(terms.p)));
  if (terms.rows)
    result = r.minus(
        result, r.mul(r.cast(terms.rows, DType::f32), channel_numbers(r, factors.zeros, DType::f32, product.axis)));
  return r.cast(r.mul(result, scale), r.output()->dtype());
}

}  // namespace lathe
