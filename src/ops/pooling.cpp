// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/windows.h"

namespace lathe {
namespace {

// The pooled axes are the last ones, as many as the window has; what comes before are planes.
struct Planes {
  int64_t count = 1;
  int64_t input = 1;  // elements of one input plane
  int64_t output = 1;
};

Planes planes_of(std::span<const int64_t> dims, std::span<const WindowAxis> axes) {
  Planes planes;
  for (size_t i = 0; i + axes.size() < dims.size(); ++i) planes.count *= dims[i];
  for (const WindowAxis& axis : axes) planes.input *= axis.input, planes.output *= axis.output;
  return planes;
}

// Row-major offset in a plane to the offset that counts the first axis fastest.
int64_t column_major(int64_t offset, std::span<const WindowAxis> axes) {
  int64_t out = 0;
  for (size_t d = axes.size(); d-- > 0;) {
    out = out * axes[d].input + offset % axes[d].input;
    offset /= axes[d].input;
  }
  return out;  // the last axis is taken first, so it ends up slowest
}

bool is_nan(double value) { return std::isnan(value); }
bool is_nan(int64_t) { return false; }

// The largest element under each window and where it stands; the first of equals wins, NaN wins over all.
template <class T>
void max_pool(const T* x, std::span<const WindowAxis> axes, std::span<T> best, std::span<int64_t> where) {
  std::fill(best.begin(), best.end(),
            std::is_same_v<T, double> ? static_cast<T>(-HUGE_VAL) : std::numeric_limits<T>::min());
  std::fill(where.begin(), where.end(), -1);
  for_each_tap(axes, [&](std::span<const int64_t> tap, int64_t) {
    for_each_run(axes, tap, [&](int64_t in, int64_t out, int64_t count, int64_t step) {
      for (int64_t i = 0; i < count; ++i) {
        const T value = x[in + i * step];
        if (where[out + i] >= 0 && !(value > best[out + i]) && (!is_nan(value) || is_nan(best[out + i]))) continue;
        best[out + i] = value;
        where[out + i] = in + i * step;
      }
    });
  });
}

void write_indices(Tensor& indices, int64_t plane, int64_t plane_size, std::span<const int64_t> where,
                   std::span<const WindowAxis> axes, bool column_major_order) {
  int64_t* out = indices.mutable_as<int64_t>() + plane * static_cast<int64_t>(where.size());
  for (size_t i = 0; i < where.size(); ++i) {
    const int64_t at = where[i] < 0 ? 0 : where[i];
    out[i] = plane * plane_size + (column_major_order ? column_major(at, axes) : at);
  }
}

void eval_max(EvalContext& context, std::span<const WindowAxis> axes) {
  const PoolingAttrs& attrs = context.attrs<PoolingAttrs>();
  const Tensor& x = context.input(0);
  const Planes planes = planes_of(x.dims(), axes);
  const auto in = static_cast<size_t>(planes.input), out = static_cast<size_t>(planes.output);
  std::vector<int64_t> where(out);
  std::vector<double> source(in), best(out);
  std::vector<int64_t> int_source(in), int_best(out);
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    if (is_floating(x.dtype())) {
      read_doubles(x, plane * planes.input, source);
      max_pool<double>(source.data(), axes, best, where);
      write_doubles(best, plane * planes.output, context.output(0));
    } else {
      read_ints(x, plane * planes.input, int_source);
      order_bits(x.dtype(), int_source);
      max_pool<int64_t>(int_source.data(), axes, int_best, where);
      order_bits(x.dtype(), int_best);
      write_ints(int_best, plane * planes.output, context.output(0));
    }
    if (context.num_outputs() > 1)
      write_indices(context.output(1), plane, planes.input, where, axes, attrs.column_major_indices);
  }
}

// How many taps of output o count along one axis: those on the input, or also those on its padding (never those that
// rounding up adds beyond it).
int64_t taps_that_count(const WindowAxis& axis, int64_t output, bool with_padding, int64_t pad_end) {
  int64_t count = 0;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t position = output * axis.stride + tap * axis.dilation - axis.pad;
    count += with_padding ? position < axis.input + pad_end : position >= 0 && position < axis.input;
  }
  return count;
}

std::vector<double> divisors(std::span<const WindowAxis> axes, bool with_padding, std::span<const int64_t> pads_end) {
  std::vector<double> out{1};
  for (size_t d = 0; d < axes.size(); ++d) {
    std::vector<double> next;
    for (double outer : out)
      for (int64_t o = 0; o < axes[d].output; ++o)
        next.push_back(outer * static_cast<double>(taps_that_count(axes[d], o, with_padding, pads_end[d])));
    out = std::move(next);
  }
  return out;
}

// Average and lp pooling: sums of |x|^p or x, then the mean or the root.
void eval_sums(EvalContext& context, std::span<const WindowAxis> axes, std::span<const int64_t> pads_end) {
  const PoolingAttrs& attrs = context.attrs<PoolingAttrs>();
  const bool lp = attrs.op == PoolingOp::lp;
  const auto p = static_cast<double>(attrs.p);
  const Planes planes = planes_of(context.input(0).dims(), axes);
  const std::vector<double> divisor = lp ? std::vector<double>() : divisors(axes, attrs.count_include_pad, pads_end);
  std::vector<double> source(static_cast<size_t>(planes.input)), sums(static_cast<size_t>(planes.output));
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    read_doubles(context.input(0), plane * planes.input, source);
    if (lp)
      for (double& value : source) value = std::pow(std::fabs(value), p);
    std::fill(sums.begin(), sums.end(), 0);
    for_each_tap(axes, [&](std::span<const int64_t> tap, int64_t) {
      for_each_run(axes, tap, [&](int64_t in, int64_t out, int64_t count, int64_t step) {
        for (int64_t i = 0; i < count; ++i) sums[out + i] += source[in + i * step];
      });
    });
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = lp ? std::pow(sums[i], 1 / p) : sums[i] / divisor[i];
    write_doubles(sums, plane * planes.output, context.output(0));
  }
}

}  // namespace

Result<> infer_pooling(InferContext& context) {
  const PoolingAttrs& attrs = context.attrs<PoolingAttrs>();
  const size_t pooled = attrs.window.size();
  if (pooled == 0) return fail(ErrorCode::attribute_invalid, "window is empty; give its extent on every pooled axis");
  LATHE_TRY(require_rank(context, 0, static_cast<int>(pooled), kMany));
  LATHE_TRY(attrs.op == PoolingOp::max ? require_numeric(context, 0) : require_floating(context, 0));
  if (attrs.op == PoolingOp::lp && attrs.p < 1)
    return fail(ErrorCode::attribute_invalid, "p is {}, but it must be 1 or more", attrs.p);
  if (context.num_outputs() > 1 && attrs.op != PoolingOp::max)
    return fail(ErrorCode::graph_invalid, "only max pooling has indices as a second output");
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(attrs, pooled));
  const Shape& x = context.shape(0);
  LATHE_ASSIGN(const Shape spatial, window_outputs(context, std::span(x).last(pooled), to_shape(attrs.window), window));
  Shape shape(x.begin(), x.end() - static_cast<ptrdiff_t>(pooled));
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  context.set(0, context.dtype(0), shape);
  if (context.num_outputs() > 1) context.set(1, DType::i64, std::move(shape));
  return {};
}

Result<> eval_pooling(EvalContext& context) {
  const PoolingAttrs& attrs = context.attrs<PoolingAttrs>();
  const size_t pooled = attrs.window.size();
  if (context.output(0).volume() == 0) return {};
  LATHE_ASSIGN(WindowAttrs window, window_attrs(attrs, pooled));
  const std::span<const int64_t> input = std::span(context.input(0).dims()).last(pooled);
  const std::vector<WindowAxis> axes =
      window_axes(input, std::span(context.output(0).dims()).last(pooled), attrs.window, window);
  if (attrs.op == PoolingOp::max) {
    eval_max(context, axes);
    return {};
  }
  for (size_t i = 0; i < pooled; ++i) {
    const Window rule = window_rule(input[i], attrs.window[i], window.stride[i], window.dilation[i],
                                    window.pads_begin[i], window.pads_end[i], window.mode);
    window.pads_end[i] = rule.pad_end.as_constant().value_or(0);
  }
  eval_sums(context, axes, window.pads_end);
  return {};
}

}  // namespace lathe
