// SPDX-License-Identifier: Apache-2.0
#include "ops/windows.h"

namespace lathe {
namespace {

Result<> check_channels(InferContext& context, int64_t groups) {
  const Shape &x = context.shape(0), &w = context.shape(1);
  if (groups < 1) return fail(ErrorCode::attribute_invalid, "groups is {}, but it must be 1 or more", groups);
  if (w.size() != x.size())
    return fail(ErrorCode::shape_mismatch, "input has shape {} and the weights have shape {}; both need the same rank",
                to_string(x), to_string(w));
  if (!context.assume_equal(x[1], w[1] * groups))
    return fail(ErrorCode::shape_mismatch,
                "input of shape {} has {} channels, but weights of shape {} with {} groups need {} * {} channels",
                to_string(x), x[1].to_string(), to_string(w), groups, groups, w[1].to_string());
  if (!context.assume_equal(mod(w[0], groups), 0))
    return fail(ErrorCode::shape_mismatch, "weights of shape {} have {} outputs, which {} groups do not divide",
                to_string(w), w[0].to_string(), groups);
  if (context.has(2) && (context.rank(2) != 1 || !context.assume_equal(context.shape(2)[0], w[0])))
    return fail(ErrorCode::shape_mismatch, "bias has shape {}, but one value per output channel is needed: [{}]",
                to_string(context.shape(2)), w[0].to_string());
  return {};
}

// T sums exactly enough: double, or uint64_t for integers (wraps).
template <class T>
std::vector<T> convolve(EvalContext& context, std::span<const WindowAxis> axes, const std::vector<T>& x,
                        const std::vector<T>& w, const std::vector<T>& bias) {
  const Dims &y_dims = context.output(0).dims(), &w_dims = context.input(1).dims();
  const int64_t groups = context.attrs<ConvolutionAttrs>().groups;
  const int64_t outputs = w_dims[0], channels = w_dims[1], per_group = outputs / groups;
  int64_t in_area = 1, out_area = 1, taps = 1;
  for (const WindowAxis& axis : axes) in_area *= axis.input, out_area *= axis.output, taps *= axis.kernel;
  std::vector<T> y(static_cast<size_t>(context.output(0).volume()));
  if (y.empty()) return y;
  for (int64_t n = 0; n < y_dims[0]; ++n)
    for (int64_t o = 0; o < outputs; ++o) {
      T* plane = y.data() + (n * outputs + o) * out_area;
      std::fill(plane, plane + out_area, bias.empty() ? T{0} : bias[o]);
      for (int64_t c = 0; c < channels; ++c) {
        const T* source = x.data() + (n * channels * groups + o / per_group * channels + c) * in_area;
        const T* weights = w.data() + (o * channels + c) * taps;
        for_each_tap(axes, [&](std::span<const int64_t> tap, int64_t flat) {
          const T weight = weights[flat];
          for_each_run(axes, tap, [&](int64_t in, int64_t out, int64_t count, int64_t step) {
            for (int64_t i = 0; i < count; ++i) plane[out + i] += weight * source[in + i * step];
          });
        });
      }
    }
  return y;
}

std::vector<uint64_t> to_unsigned(const Tensor& tensor) {
  const std::vector<int64_t> values = to_ints(tensor);
  return {values.begin(), values.end()};
}

}  // namespace

Result<> infer_convolution(InferContext& context) {
  const ConvolutionAttrs& attrs = context.attrs<ConvolutionAttrs>();
  LATHE_TRY(require_numeric(context, 0));
  LATHE_TRY(require_factors(context, 0, 1));
  const DType sums = sum_dtype(context.dtype(0));
  if (context.has(2) && context.dtype(2) != sums)
    return fail(ErrorCode::type_mismatch, "bias has type {}, but {} is needed for operands of type {}",
                name_of(context.dtype(2)), name_of(sums), name_of(context.dtype(0)));
  LATHE_TRY(require_rank(context, 0, 3, kMany));
  LATHE_TRY(check_channels(context, attrs.groups));
  const size_t spatial_rank = static_cast<size_t>(context.rank(0)) - 2;
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(attrs, spatial_rank));
  LATHE_ASSIGN(Shape spatial, window_outputs(context, std::span(context.shape(0)).subspan(2),
                                             std::span(context.shape(1)).subspan(2), window));
  Shape shape = {context.shape(0)[0], context.shape(1)[0]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  context.set(0, sums, std::move(shape));
  return {};
}

Result<> eval_convolution(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1);
  Tensor& y = context.output(0);
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(context.attrs<ConvolutionAttrs>(), x.dims().size() - 2));
  const std::vector<WindowAxis> axes = window_axes(std::span(x.dims()).subspan(2), std::span(y.dims()).subspan(2),
                                                   std::span(w.dims()).subspan(2), window);
  if (is_floating(x.dtype())) {
    const std::vector<double> bias = context.has(2) ? to_doubles(context.input(2)) : std::vector<double>();
    from_doubles(convolve(context, axes, to_doubles(x), to_doubles(w), bias), y);
  } else {
    const std::vector<uint64_t> bias = context.has(2) ? to_unsigned(context.input(2)) : std::vector<uint64_t>();
    const std::vector<uint64_t> sums = convolve(context, axes, to_unsigned(x), to_unsigned(w), bias);
    from_ints(std::vector<int64_t>(sums.begin(), sums.end()), y);
  }
  return {};
}

}  // namespace lathe
