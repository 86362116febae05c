// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "passes/decompose.h"

namespace lathe {
namespace {

using ir::Value;

constexpr int64_t kMostTaps = 64;

int64_t value_at(const Ints& values, size_t i, int64_t fallback) { return i < values.size() ? values[i] : fallback; }

// The window of a convolution or pooling, and what it slides over once that is padded.
struct Window {
  Ints kernel, stride, dilation, begin, end;

  template <class Attrs>
  Window(const Attrs& attrs, Ints extents) : kernel(std::move(extents)) {
    for (size_t i = 0; i < kernel.size(); ++i) {
      stride.push_back(value_at(attrs.stride, i, 1));
      dilation.push_back(value_at(attrs.dilation, i, 1));
      begin.push_back(value_at(attrs.pads_begin, i, 0));
      end.push_back(value_at(attrs.pads_end, i, 0));
    }
  }
  int64_t taps() const {
    int64_t product = 1;
    for (const int64_t extent : kernel) product *= extent;
    return product;
  }
  bool is_padded() const {
    const auto any = [](const Ints& pads) {
      return std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p; });
    };
    return any(begin) || any(end);
  }
};

Ints axes_of(const Window& window) {
  Ints axes;
  for (size_t i = 0; i < window.kernel.size(); ++i) axes.push_back(static_cast<int64_t>(i) + 2);
  return axes;
}

Value* padded(Rewrite& r, Value* x, const Window& window, double value) {
  if (!window.is_padded()) return x;
  Ints pads = window.begin;
  pads.insert(pads.end(), window.end.begin(), window.end.end());
  return r.add(PadAttrs(), {x, r.ints(pads), r.scalar_like(value, x), r.ints(axes_of(window))});
}

// What one tap of the window reads for all results: the padded x from the tap on, in the window's strides.
Value* seen_by(Rewrite& r, Value* x, const Window& window, const Ints& tap) {
  Ints starts, ends;
  for (size_t i = 0; i < tap.size(); ++i) {
    const int64_t behind = (window.kernel[i] - 1 - tap[i]) * window.dilation[i];
    starts.push_back(tap[i] * window.dilation[i]);
    ends.push_back(behind ? -behind : std::numeric_limits<int64_t>::max());
  }
  return r.add(SliceAttrs(), {x, r.ints(starts), r.ints(ends), r.ints(axes_of(window)), r.ints(window.stride)});
}

// op(op(f(tap 0), f(tap 1)), ...)
template <class F>
Value* over_taps(Rewrite& r, const Window& window, ElementwiseOp op, F of_tap) {
  Value* total = nullptr;
  Ints tap(window.kernel.size(), 0);
  for (int64_t number = 0; number < window.taps(); ++number) {
    int64_t rest = number;
    for (size_t i = tap.size(); i-- > 0; rest /= window.kernel[i]) tap[i] = rest % window.kernel[i];
    Value* part = of_tap(tap, number);
    total = total ? r.binary(op, total, part) : part;
  }
  return total;
}

// The weights of one tap: [O, C], or [C, 1...] to multiply each channel by.
Result<Tensor> weights_of_tap(const Tensor& weights, int64_t taps, int64_t number, bool depthwise) {
  const int64_t outputs = weights.dims()[0], inputs = weights.dims()[1];
  Dims dims = {outputs, inputs};
  if (depthwise) dims.insert(dims.end(), weights.dims().size() - 3, 1);
  LATHE_ASSIGN(Tensor part, Tensor::allocate(DType::f64, dims));
  for (int64_t i = 0; i < outputs * inputs; ++i) part.mutable_as<double>()[i] = weights.as<double>()[i * taps + number];
  return part;
}

// The p-norm of each window.
Result<bool> decompose_lp_pooling(Rewrite& r) {
  const auto& attrs = r.node->attrs<PoolingAttrs>();
  const Window window(attrs, attrs.window);
  if (attrs.padding_mode != PaddingMode::explicit_round_down || window.taps() == 0 || window.taps() > kMostTaps)
    return false;
  const auto p = static_cast<double>(attrs.p);
  Value* root = r.scalar(1 / p, r.output()->dtype());
  Value* size = r.unary(UnaryOp::abs, r.input(0));
  Value* power = attrs.p == 2 ? r.mul(size, size) : r.binary(ElementwiseOp::pow, size, p);
  Value* x = padded(r, power, window, 0);
  Value* sum =
      over_taps(r, window, ElementwiseOp::add, [&](const Ints& tap, int64_t) { return seen_by(r, x, window, tap); });
  return r.finish(attrs.p == 2 ? r.unary(UnaryOp::sqrt, sum) : r.binary(ElementwiseOp::pow, sum, root));
}

}  // namespace

Result<bool> decompose_convolution(Rewrite& r) {
  const auto& attrs = r.node->attrs<ConvolutionAttrs>();
  const Tensor* weights = r.input(1)->constant();
  if (r.output()->dtype() != DType::f64 || !weights || attrs.padding_mode != PaddingMode::explicit_round_down)
    return false;
  const Dims& dims = weights->dims();
  const Window window(attrs, Ints(dims.begin() + 2, dims.end()));
  const bool depthwise = attrs.groups > 1 && dims[1] == 1 && dims[0] == attrs.groups;
  if (window.taps() == 0 || window.taps() > kMostTaps || (attrs.groups != 1 && !depthwise)) return false;
  Value* const bias = r.input(2);
  Value* x = padded(r, r.input(0), window, 0);
  EinsumAttrs product;
  product.equation = "nc...,oc->no...";
  Value* sum = over_taps(r, window, ElementwiseOp::add, [&](const Ints& tap, int64_t number) {
    Value* seen = seen_by(r, x, window, tap);
    Value* factor = r.constant(weights_of_tap(*weights, window.taps(), number, depthwise));
    return depthwise ? r.mul(seen, factor) : r.add(product, {seen, factor});
  });
  if (bias) sum = r.plus(sum, along_channels(r, bias, static_cast<int>(dims.size())));
  return r.finish(sum);
}

// Computed weights serve one run alone: a product takes them, and row-major images, as they lie, where a convolution
// brings images into channels-last order and back.
Result<bool> decompose_pointwise_convolution(Rewrite& r) {
  const auto& attrs = r.node->attrs<ConvolutionAttrs>();
  Value *const x = r.input(0), *const w = r.input(1), *const bias = r.input(2);
  const auto kernel = std::span(w->shape()).subspan(2);
  const Window window(attrs, Ints(kernel.size(), 1));
  if (r.output()->dtype() != DType::f32 || w->content() || attrs.groups != 1 || window.is_padded() ||
      std::any_of(kernel.begin(), kernel.end(), [](const Expr& extent) { return extent != Expr(1); }) ||
      std::any_of(window.stride.begin(), window.stride.end(), [](int64_t stride) { return stride != 1; }))
    return false;
  Value* weights = r.reshape(w, {0, -1});
  Value* pixels = r.reshape(x, {0, 0, -1});
  Value* result = r.matmul(weights, pixels);
  if (bias) result = r.plus(result, r.reshape(bias, {-1, 1}));
  Value* shape = r.concat({r.shape_of(x, 0, 1), r.shape_of(w, 0, 1), r.shape_of(x, 2, x->rank())}, 0);
  return r.finish(r.reshape(result, shape));
}

Result<bool> decompose_pooling(Rewrite& r) {
  const auto& attrs = r.node->attrs<PoolingAttrs>();
  if (attrs.op == PoolingOp::lp) return decompose_lp_pooling(r);
  const DType type = r.output()->dtype();
  const bool maximum = attrs.op == PoolingOp::max;
  if (maximum && r.context.arithmetic.weighted_products && is_byte_integer(type)) return false;
  if (type == DType::f32 || r.node->num_outputs() != 1 || attrs.padding_mode != PaddingMode::explicit_round_down ||
      (!maximum && (attrs.op != PoolingOp::average || type != DType::f64)))
    return false;
  const Window window(attrs, attrs.window);
  if (window.taps() == 0 || window.taps() > kMostTaps || (!maximum && window.is_padded() && !attrs.count_include_pad))
    return false;
  const bool is_signed = class_of(type) == DTypeClass::signed_int;
  const double lowest = is_floating(type) ? -HUGE_VAL
                        : is_signed       ? -std::ldexp(1.0, static_cast<int>(8 * size_of(type)) - 1)
                                          : 0;
  Value* x = padded(r, r.input(0), window, maximum ? lowest : 0);
  Value* result = over_taps(r, window, maximum ? ElementwiseOp::max : ElementwiseOp::add,
                            [&](const Ints& tap, int64_t) { return seen_by(r, x, window, tap); });
  if (!maximum) result = r.binary(ElementwiseOp::mul, result, 1 / static_cast<double>(window.taps()));
  return r.finish(result);
}

}  // namespace lathe
