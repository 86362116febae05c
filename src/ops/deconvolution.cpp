// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/windows.h"

namespace lathe {
namespace {

// One spatial axis: its output extent and the padding in front that is cut off the full result.
struct Extent {
  Expr output;
  Expr pad;
};

Extent extent_of(const Expr& input, const Expr& kernel, size_t axis, const DeconvolutionAttrs& attrs,
                 const WindowAttrs& window) {
  const bool same = window.mode == PaddingMode::same_upper || window.mode == PaddingMode::same_lower;
  const int64_t stride = window.stride[axis];
  const Expr reach = (kernel - 1) * window.dilation[axis] + 1;
  const Expr full = (input - 1) * stride + reach + (attrs.output_padding.empty() ? 0 : attrs.output_padding[axis]);
  if (!same && attrs.output_shape.empty())
    return {full - window.pads_begin[axis] - window.pads_end[axis], window.pads_begin[axis]};
  // The output is given (or input * stride), and the padding follows: the odd pixel goes to the end for same_upper
  // only.
  const Expr output = attrs.output_shape.empty() ? input * stride : Expr(attrs.output_shape[axis]);
  const Expr total = max(full - output, 0);
  return {output, window.mode == PaddingMode::same_upper ? floordiv(total, 2) : total - floordiv(total, 2)};
}

Result<> check_channels(InferContext& context, int64_t groups) {
  const Shape &x = context.shape(0), &w = context.shape(1);
  if (groups < 1) return fail(ErrorCode::attribute_invalid, "groups is {}, but it must be 1 or more", groups);
  if (w.size() != x.size())
    return fail(ErrorCode::shape_mismatch, "input has shape {} and the weights have shape {}; both need the same rank",
                to_string(x), to_string(w));
  if (!context.assume_equal(x[1], w[0]))
    return fail(ErrorCode::shape_mismatch, "input of shape {} has {} channels, but weights of shape {} need {}",
                to_string(x), x[1].to_string(), to_string(w), w[0].to_string());
  if (!context.assume_equal(mod(w[0], groups), 0))
    return fail(ErrorCode::shape_mismatch, "weights of shape {} have {} input channels, which {} groups do not divide",
                to_string(w), w[0].to_string(), groups);
  const Expr outputs = w[1] * groups;
  if (context.has(2) && (context.rank(2) != 1 || !context.assume_equal(context.shape(2)[0], outputs)))
    return fail(ErrorCode::shape_mismatch, "bias has shape {}, but one value per output channel is needed: [{}]",
                to_string(context.shape(2)), outputs.to_string());
  return {};
}

Result<> check_output_attrs(const DeconvolutionAttrs& attrs, size_t spatial_rank) {
  for (const Ints* values : {&attrs.output_padding, &attrs.output_shape}) {
    if (!values->empty() && values->size() != spatial_rank)
      return fail(ErrorCode::attribute_invalid, "{} has {} values, but the input has {} spatial axes",
                  values == &attrs.output_shape ? "output_shape" : "output_padding", values->size(), spatial_rank);
    for (int64_t value : *values)
      if (value < 0)
        return fail(ErrorCode::attribute_invalid, "output_shape and output_padding must not be negative, found {}",
                    value);
  }
  return {};
}

// Each input element adds weight * value to every output that its taps reach: the pairs of a convolution from y to x.
std::vector<double> scatter(EvalContext& context, std::span<const WindowAxis> axes) {
  const Dims &x_dims = context.input(0).dims(), &w_dims = context.input(1).dims();
  const int64_t groups = context.attrs<DeconvolutionAttrs>().groups;
  const int64_t channels = w_dims[0], per_group = w_dims[1], outputs = per_group * groups;
  const std::vector<double> x = to_doubles(context.input(0)), w = to_doubles(context.input(1));
  const std::vector<double> bias = context.has(2) ? to_doubles(context.input(2)) : std::vector<double>();
  int64_t x_area = 1, y_area = 1, taps = 1;
  for (const WindowAxis& axis : axes) x_area *= axis.output, y_area *= axis.input, taps *= axis.kernel;
  std::vector<double> y(static_cast<size_t>(context.output(0).volume()));
  if (y.empty()) return y;
  for (int64_t n = 0; n < x_dims[0]; ++n)
    for (int64_t o = 0; o < outputs; ++o) {
      double* plane = y.data() + (n * outputs + o) * y_area;
      std::fill(plane, plane + y_area, bias.empty() ? 0 : bias[o]);
      const int64_t group_size = channels / groups, begin = o / per_group * group_size;
      for (int64_t c = begin; c < begin + group_size; ++c) {
        const double* source = x.data() + (n * channels + c) * x_area;
        const double* weights = w.data() + (c * per_group + o % per_group) * taps;
        for_each_tap(axes, [&](std::span<const int64_t> tap, int64_t flat) {
          for_each_run(axes, tap, [&](int64_t target, int64_t from, int64_t count, int64_t step) {
            for (int64_t i = 0; i < count; ++i) plane[target + i * step] += weights[flat] * source[from + i];
          });
        });
      }
    }
  return y;
}

}  // namespace

Result<> infer_deconvolution(InferContext& context) {
  const DeconvolutionAttrs& attrs = context.attrs<DeconvolutionAttrs>();
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(require_same_dtype(context, 0, 1));
  if (context.has(2)) LATHE_TRY(require_same_dtype(context, 0, 2));
  LATHE_TRY(require_rank(context, 0, 3, kMany));
  LATHE_TRY(check_channels(context, attrs.groups));
  const Shape &x = context.shape(0), &w = context.shape(1);
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(attrs, x.size() - 2));
  LATHE_TRY(check_output_attrs(attrs, x.size() - 2));
  Shape shape = {x[0], w[1] * attrs.groups};
  for (size_t i = 2; i < x.size(); ++i) {
    Expr dim = extent_of(x[i], w[i], i - 2, attrs, window).output;
    if (x[i] == Expr(0)) dim = 0;
    if (w[i] == Expr(0) || (dim.is_constant() && *dim.as_constant() < 0))
      return fail(ErrorCode::shape_mismatch,
                  "spatial axis {} of input {} has no valid output extent ({}); reduce the padding", i - 2,
                  to_string(x), dim.to_string());
    shape.push_back(std::move(dim));
  }
  context.set(0, context.dtype(0), std::move(shape));
  return {};
}

Result<> eval_deconvolution(EvalContext& context) {
  const DeconvolutionAttrs& attrs = context.attrs<DeconvolutionAttrs>();
  const Dims &x = context.input(0).dims(), &w = context.input(1).dims(), &y = context.output(0).dims();
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(attrs, x.size() - 2));
  std::vector<WindowAxis> axes;
  for (size_t i = 2; i < x.size(); ++i) {
    const Extent extent = extent_of(x[i], w[i], i - 2, attrs, window);
    axes.push_back({y[i], x[i], w[i], window.stride[i - 2], window.dilation[i - 2], *extent.pad.as_constant()});
  }
  from_doubles(scatter(context, axes), context.output(0));
  return {};
}

}  // namespace lathe
