// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "lowering/decompose_windows.h"

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

Result<Value*> padded(Rewrite& r, Value* x, const Window& window, double value) {
  if (!window.is_padded()) return x;
  Ints pads = window.begin;
  pads.insert(pads.end(), window.end.begin(), window.end.end());
  LATHE_ASSIGN(Value * around, r.ints(pads));
  LATHE_ASSIGN(Value * filling, r.scalar(x->dtype(), value));
  LATHE_ASSIGN(Value * axes, r.ints(axes_of(window)));
  return r.add(PadAttrs(), {x, around, filling, axes});
}

// What one tap of the window reads for all results: the padded x from the tap on, in the window's strides.
Result<Value*> seen_by(Rewrite& r, Value* x, const Window& window, const Ints& tap) {
  Ints starts, ends;
  for (size_t i = 0; i < tap.size(); ++i) {
    const int64_t behind = (window.kernel[i] - 1 - tap[i]) * window.dilation[i];
    starts.push_back(tap[i] * window.dilation[i]);
    ends.push_back(behind ? -behind : std::numeric_limits<int64_t>::max());
  }
  LATHE_ASSIGN(Value * from, r.ints(starts));
  LATHE_ASSIGN(Value * to, r.ints(ends));
  LATHE_ASSIGN(Value * axes, r.ints(axes_of(window)));
  LATHE_ASSIGN(Value * steps, r.ints(window.stride));
  return r.add(SliceAttrs(), {x, from, to, axes, steps});
}

// op(op(f(tap 0), f(tap 1)), ...)
template <class F>
Result<Value*> over_taps(Rewrite& r, const Window& window, ElementwiseOp op, F of_tap) {
  Value* total = nullptr;
  Ints tap(window.kernel.size(), 0);
  for (int64_t number = 0; number < window.taps(); ++number) {
    int64_t rest = number;
    for (size_t i = tap.size(); i-- > 0; rest /= window.kernel[i]) tap[i] = rest % window.kernel[i];
    LATHE_ASSIGN(Value * part, of_tap(tap, number));
    if (total) {
      LATHE_ASSIGN(part, r.elementwise(op, total, part));
    }
    total = part;
  }
  return total;
}

// The weights of one tap: [O, C], or [C, 1...] to multiply each channel by.
Result<Value*> weights_of_tap(Rewrite& r, const Tensor& weights, int64_t taps, int64_t number, bool depthwise) {
  const int64_t outputs = weights.dims()[0], inputs = weights.dims()[1];
  Dims dims = {outputs, inputs};
  if (depthwise) dims.insert(dims.end(), weights.dims().size() - 3, 1);
  LATHE_ASSIGN(Tensor part, Tensor::allocate(DType::f64, dims));
  for (int64_t i = 0; i < outputs * inputs; ++i) part.mutable_as<double>()[i] = weights.as<double>()[i * taps + number];
  return r.constant(std::move(part));
}

// The p-norm of each window.
Result<bool> decompose_lp_pooling(Rewrite& r) {
  const auto& attrs = r.node->attrs<PoolingAttrs>();
  const DType type = r.output()->dtype();
  const Window window(attrs, attrs.window);
  if (attrs.padding_mode != PaddingMode::explicit_round_down || window.taps() == 0 || window.taps() > kMostTaps)
    return false;
  LATHE_ASSIGN(Value * p, r.scalar(type, static_cast<double>(attrs.p)));
  LATHE_ASSIGN(Value * root, r.scalar(type, 1 / static_cast<double>(attrs.p)));
  LATHE_ASSIGN(Value * size, r.unary(UnaryOp::abs, r.input(0)));
  LATHE_ASSIGN(Value * power, attrs.p == 2 ? r.elementwise(ElementwiseOp::mul, size, size)
                                           : r.elementwise(ElementwiseOp::pow, size, p));
  LATHE_ASSIGN(Value * x, padded(r, power, window, 0));
  LATHE_ASSIGN(Value * sum, over_taps(r, window, ElementwiseOp::add,
                                      [&](const Ints& tap, int64_t) { return seen_by(r, x, window, tap); }));
  LATHE_ASSIGN(Value * result,
               attrs.p == 2 ? r.unary(UnaryOp::sqrt, sum) : r.elementwise(ElementwiseOp::pow, sum, root));
  return r.finish(result);
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
  LATHE_ASSIGN(Value * x, padded(r, r.input(0), window, 0));
  EinsumAttrs product;
  product.equation = "nc...,oc->no...";
  LATHE_ASSIGN(Value * sum,
               over_taps(r, window, ElementwiseOp::add, [&](const Ints& tap, int64_t number) -> Result<Value*> {
                 LATHE_ASSIGN(Value * seen, seen_by(r, x, window, tap));
                 LATHE_ASSIGN(Value * factor, weights_of_tap(r, *weights, window.taps(), number, depthwise));
                 return depthwise ? r.elementwise(ElementwiseOp::mul, seen, factor) : r.add(product, {seen, factor});
               }));
  if (bias) {
    Ints shape(dims.size() - 1, 1);
    shape[0] = -1;
    LATHE_ASSIGN(Value * column, r.reshape(bias, shape));
    LATHE_ASSIGN(sum, r.elementwise(ElementwiseOp::add, sum, column));
  }
  return r.finish(sum);
}

// Computed weights serve one run alone: a product takes them, and row-major images, as they lie, where a convolution
// brings images into channels-last order and back.
Result<bool> multiply_pixels(Rewrite& r) {
  const auto& attrs = r.node->attrs<ConvolutionAttrs>();
  Value *const x = r.input(0), *const w = r.input(1), *const bias = r.input(2);
  const auto kernel = std::span(w->shape()).subspan(2);
  const Window window(attrs, Ints(kernel.size(), 1));
  if (r.output()->dtype() != DType::f32 || w->constant() || attrs.groups != 1 || window.is_padded() ||
      std::any_of(kernel.begin(), kernel.end(), [](const Expr& extent) { return extent != Expr(1); }) ||
      std::any_of(window.stride.begin(), window.stride.end(), [](int64_t stride) { return stride != 1; }))
    return false;
  LATHE_ASSIGN(Value * weights, r.reshape(w, {0, -1}));
  LATHE_ASSIGN(Value * pixels, r.reshape(x, {0, 0, -1}));
  LATHE_ASSIGN(Value * result, r.add(MatmulAttrs(), {weights, pixels}));
  if (bias) {
    LATHE_ASSIGN(Value * column, r.reshape(bias, {-1, 1}));
    LATHE_ASSIGN(result, r.elementwise(ElementwiseOp::add, result, column));
  }
  LATHE_ASSIGN(Value * images, r.dims_of(x, 0, 1));
  LATHE_ASSIGN(Value * channels, r.dims_of(w, 0, 1));
  LATHE_ASSIGN(Value * extents, r.dims_of(x, 2, x->rank()));
  LATHE_ASSIGN(Value * shape, r.add(ConcatAttrs(), {images, channels, extents}));
  LATHE_ASSIGN(result, r.add(ReshapeAttrs(), {result, shape}));
  return r.finish(result);
}

Result<bool> decompose_pooling(Rewrite& r) {
  const auto& attrs = r.node->attrs<PoolingAttrs>();
  if (attrs.op == PoolingOp::lp) return decompose_lp_pooling(r);
  const DType type = r.output()->dtype();
  const bool maximum = attrs.op == PoolingOp::max;
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
  LATHE_ASSIGN(Value * x, padded(r, r.input(0), window, maximum ? lowest : 0));
  LATHE_ASSIGN(Value * result, over_taps(r, window, maximum ? ElementwiseOp::max : ElementwiseOp::add,
                                         [&](const Ints& tap, int64_t) { return seen_by(r, x, window, tap); }));
  if (!maximum) {
    LATHE_ASSIGN(Value * factor, r.scalar(type, 1 / static_cast<double>(window.taps())));
    LATHE_ASSIGN(result, r.elementwise(ElementwiseOp::mul, result, factor));
  }
  return r.finish(result);
}

}  // namespace lathe
