// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/rules.h"

namespace lathe {
namespace {

// x, roi, scales, sizes.
constexpr size_t kRoi = 1, kScales = 2, kSizes = 3;

// The resized axes, non-negative, in the order in which scales, sizes and roi list them.
Result<Ints> resized_axes(const ResizeAttrs& attrs, int64_t rank) {
  Ints axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (attrs.axes.empty()) return axes;
  LATHE_TRY(normalize_axes(attrs.axes, rank));
  axes = attrs.axes;
  for (int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  return axes;
}

// floor(dim * scale), exactly: a scale that was a float is m / 2^e. Nothing when that form is too large.
std::optional<Expr> scaled_dim(const Expr& dim, double scale) {
  if (const std::optional<int64_t> value = dim.as_constant()) {
    const double product = std::floor(static_cast<double>(*value) * scale);
    return product < 0x1p62 ? std::optional<Expr>(static_cast<int64_t>(product)) : std::nullopt;
  }
  int exponent = 0;
  double mantissa = std::frexp(scale, &exponent);  // scale = mantissa * 2^exponent
  while (mantissa != std::floor(mantissa)) mantissa *= 2, --exponent;
  if (exponent > 30 || exponent < -62 || mantissa > 0x1p53) return std::nullopt;
  const auto factor = static_cast<int64_t>(mantissa);
  if (exponent > 0 && factor > INT64_MAX >> exponent) return std::nullopt;
  Expr result = exponent >= 0 ? dim * (factor << exponent) : floordiv(dim * factor, int64_t{1} << -exponent);
  return result.is_valid() ? std::optional(std::move(result)) : std::nullopt;
}

Result<> check_scales(std::span<const double> scales, size_t axes) {
  if (scales.size() != axes)
    return fail(ErrorCode::shape_mismatch, "scales has {} values, but {} axes are resized; give one scale per axis",
                scales.size(), axes);
  for (double scale : scales)
    if (!(scale > 0) || std::isinf(scale))
      return fail(ErrorCode::attribute_invalid, "scales holds {}, but a scale must be positive and finite", scale);
  return {};
}

double aspect_scale(const ResizeAttrs& attrs, std::span<const int64_t> sizes, std::span<const int64_t> dims) {
  double scale = attrs.aspect == AspectPolicy::not_larger ? HUGE_VAL : 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double own = static_cast<double>(sizes[i]) / static_cast<double>(dims[i]);
    scale = attrs.aspect == AspectPolicy::not_larger ? std::min(scale, own) : std::max(scale, own);
  }
  return scale;
}

// Puts the output dims of the resized axes into `shape`.
Result<> apply_scales(InferContext& context, const Ints& axes, Shape& shape) {
  const Tensor* tensor = context.constant(kScales);
  const std::vector<double> scales = tensor ? to_doubles(*tensor) : std::vector<double>();
  if (tensor) LATHE_TRY(check_scales(scales, axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr& dim = shape[static_cast<size_t>(axes[i])];
    const std::optional<Expr> scaled = tensor ? scaled_dim(dim, scales[i]) : std::nullopt;
    dim = scaled ? *scaled : context.new_symbol("resized", static_cast<size_t>(axes[i]));
  }
  return {};
}

Result<> apply_sizes(InferContext& context, const Ints& axes, Shape& shape) {
  const ResizeAttrs& attrs = context.attrs<ResizeAttrs>();
  const std::vector<Expr>* sizes = context.partial_elements(kSizes);
  if (sizes && sizes->size() != axes.size())
    return fail(ErrorCode::shape_mismatch, "sizes has {} values, but {} axes are resized; give one size per axis",
                sizes->size(), axes.size());
  Dims dims;
  for (int64_t axis : axes) dims.push_back(shape[static_cast<size_t>(axis)].as_constant().value_or(-1));
  const std::optional<Ints> known = context.constant_elements(kSizes);
  const bool stretch = attrs.aspect == AspectPolicy::stretch;
  const bool computable = known && std::find(dims.begin(), dims.end(), -1) == dims.end();
  const double scale = !stretch && computable ? aspect_scale(attrs, *known, dims) : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr& dim = shape[static_cast<size_t>(axes[i])];
    if (const std::optional<Expr> size = context.element(kSizes, i); stretch && size)
      dim = *size;
    else if (!stretch && computable)
      dim = round_to<int64_t>(std::floor(scale * static_cast<double>(dims[i]) + 0.5));  // negative when out of range
    else
      dim = context.new_symbol("resized", static_cast<size_t>(axes[i]));
    if (dim.is_constant() && *dim.as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "sizes asks for {} elements on axis {}", dim.to_string(), axes[i]);
  }
  return {};
}

// What one axis needs while running.
struct AxisPlan {
  int64_t input, output;
  double scale;
  double roi_begin = 0, roi_end = 1;
};

// Each output position is a weighted sum of `taps` consecutive input positions (beyond the ends: the end's element).
struct Samples {
  int64_t taps = 1;
  std::vector<int64_t> index;  // [output, taps]
  std::vector<double> weight;  // [output, taps]
  std::vector<bool> outside;   // tf_crop_and_resize: this position takes the extrapolation value
};

double source_position(const ResizeAttrs& attrs, const AxisPlan& axis, double y) {
  const auto input = static_cast<double>(axis.input);
  const double output = axis.scale * input;  // not rounded, as ONNX has it
  switch (attrs.coordinates) {
    case CoordinateMode::align_corners:
      return output == 1 ? 0 : y * (input - 1) / (output - 1);
    case CoordinateMode::asymmetric:
      return y / axis.scale;
    case CoordinateMode::tf_half_pixel_for_nn:
      return (y + 0.5) / axis.scale;
    case CoordinateMode::pytorch_half_pixel:
      return output == 1 ? -0.5 : (y + 0.5) / axis.scale - 0.5;
    case CoordinateMode::half_pixel:
      return (y + 0.5) / axis.scale - 0.5;
    case CoordinateMode::half_pixel_symmetric:
      return input / 2 * (1 - static_cast<double>(axis.output) / output) + (y + 0.5) / axis.scale - 0.5;
    case CoordinateMode::tf_crop_and_resize: {
      const double extent = (axis.roi_end - axis.roi_begin) * (input - 1);
      return axis.roi_begin * (input - 1) + (output == 1 ? extent / 2 : y * extent / (output - 1));
    }
  }
  return 0;
}

double cubic_kernel(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

bool takes_left(NearestMode mode, double ratio) {
  switch (mode) {
    case NearestMode::round_prefer_floor:
      return ratio <= 0.5;
    case NearestMode::round_prefer_ceil:
      return ratio < 0.5;
    case NearestMode::floor:
      return true;
    case NearestMode::ceil:
      return false;
  }
  return true;
}

// Weights of the taps around a position that lies `ratio` in (0, 1] behind tap `left`; antialiasing widens the filter
// when the axis shrinks.
void fill_weights(const ResizeAttrs& attrs, double scale, double ratio, int64_t left, std::span<double> weights) {
  if (attrs.mode == ResizeMode::nearest) {
    const bool first = ratio != 1 && takes_left(attrs.nearest, ratio);
    weights[0] = first, weights[1] = !first;
    return;
  }
  const double shrink = attrs.antialias ? std::min(scale, 1.0) : 1.0;
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double distance = shrink * (static_cast<double>(static_cast<int64_t>(i) - left) - ratio);
    weights[i] = attrs.mode == ResizeMode::cubic ? cubic_kernel(distance, attrs.cubic_a)
                                                 : std::max(0.0, 1 - std::fabs(distance));
    sum += weights[i];
  }
  if (attrs.antialias)
    for (double& weight : weights) weight /= sum;
}

Samples sample_axis(const ResizeAttrs& attrs, const AxisPlan& axis) {
  Samples samples;
  // The filter reaches `radius` input elements to each side; `left` taps stand before the one at floor(position).
  const double shrink = attrs.antialias && attrs.mode != ResizeMode::nearest ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = std::min((attrs.mode == ResizeMode::cubic ? 2 : 1) / shrink, 0x1p50);
  const int64_t left = -(static_cast<int64_t>(std::floor(-reach)) + 1);
  samples.taps = 2 * left + 2;
  for (int64_t o = 0; o < axis.output; ++o) {
    double x = source_position(attrs, axis, static_cast<double>(o));
    x = std::isnan(x) ? 0 : std::clamp(x, -0x1p50, 0x1p50);  // a wild roi must not leave the range of indices
    const double whole = std::floor(x);
    const double ratio = x == whole ? 1 : x - whole;  // a position on an element belongs to the gap before it
    const int64_t start = static_cast<int64_t>(whole) - (x == whole ? 1 : 0) - left;
    std::vector<double> weights(static_cast<size_t>(samples.taps));
    fill_weights(attrs, axis.scale, ratio, left, weights);
    double kept = 0;
    for (int64_t t = 0; t < samples.taps; ++t) {
      const int64_t at = start + t;
      if (attrs.exclude_outside && (at < 0 || at >= axis.input)) weights[t] = 0;
      kept += weights[t];
      samples.index.push_back(std::clamp<int64_t>(at, 0, axis.input - 1));
    }
    if (attrs.exclude_outside && kept != 0)
      for (double& weight : weights) weight /= kept;
    samples.weight.insert(samples.weight.end(), weights.begin(), weights.end());
    samples.outside.push_back(attrs.coordinates == CoordinateMode::tf_crop_and_resize &&
                              (x < 0 || x > static_cast<double>(axis.input - 1)));
  }
  return samples;
}

// Resizes one axis of `values`, whose dims are `dims`.
std::vector<double> resize_axis(const ResizeAttrs& attrs, const std::vector<double>& values, const Dims& dims,
                                int64_t axis, const AxisPlan& plan) {
  const AxisSplit split = split_at(dims, axis);
  const Samples samples = sample_axis(attrs, plan);
  std::vector<double> out(static_cast<size_t>(split.outer * plan.output * split.inner));
  for (int64_t outer = 0; outer < split.outer; ++outer)
    for (int64_t o = 0; o < plan.output; ++o) {
      double* target = out.data() + (outer * plan.output + o) * split.inner;
      if (samples.outside[o]) {
        std::fill(target, target + split.inner, attrs.extrapolation);
        continue;
      }
      for (int64_t t = 0; t < samples.taps; ++t) {
        const double weight = samples.weight[o * samples.taps + t];
        if (weight == 0) continue;  // an infinity that does not count must not make a NaN
        const double* source =
            values.data() + (outer * split.extent + samples.index[o * samples.taps + t]) * split.inner;
        for (int64_t i = 0; i < split.inner; ++i) target[i] += weight * source[i];
      }
    }
  return out;
}

std::vector<AxisPlan> plan_axes(EvalContext& context, const Ints& axes) {
  const ResizeAttrs& attrs = context.attrs<ResizeAttrs>();
  const Dims &x = context.input(0).dims(), &y = context.output(0).dims();
  std::vector<AxisPlan> plans;
  Dims dims;
  for (int64_t axis : axes) {
    const auto at = static_cast<size_t>(axis);
    dims.push_back(x[at]);
    plans.push_back({x[at], y[at], static_cast<double>(y[at]) / static_cast<double>(x[at])});
  }
  if (!context.has(kSizes)) {
    for (size_t i = 0; i < plans.size(); ++i)
      plans[i].scale = context.input(kScales).at_double(static_cast<int64_t>(i));
  } else if (attrs.aspect != AspectPolicy::stretch) {
    const double scale = aspect_scale(attrs, to_ints(context.input(kSizes)), dims);
    for (AxisPlan& plan : plans) plan.scale = scale;
  }
  if (attrs.coordinates == CoordinateMode::tf_crop_and_resize)
    for (size_t i = 0; i < plans.size(); ++i) {
      plans[i].roi_begin = context.input(kRoi).at_double(static_cast<int64_t>(i));
      plans[i].roi_end = context.input(kRoi).at_double(static_cast<int64_t>(i + plans.size()));
    }
  return plans;
}

// Integers round to nearest even and saturate.
void store(std::vector<double>& values, Tensor& y) {
  const DTypeClass kind = class_of(y.dtype());
  if (kind == DTypeClass::signed_int || kind == DTypeClass::unsigned_int) {
    const int bits = static_cast<int>(size_of(y.dtype())) * 8;
    const double high = kind == DTypeClass::signed_int ? std::ldexp(1.0, bits - 1) : std::ldexp(1.0, bits);
    const double low = kind == DTypeClass::signed_int ? -high : 0;
    for (double& value : values)
      value = std::clamp(std::nearbyint(value), low, bits == 64 ? std::nextafter(high, 0.0) : high - 1);
  }
  from_doubles(values, y);
}

Result<> check_inputs(InferContext& context, size_t axes) {
  const ResizeAttrs& attrs = context.attrs<ResizeAttrs>();
  if (context.has(kScales) == context.has(kSizes))
    return fail(ErrorCode::graph_invalid, "exactly one of the inputs scales and sizes must be given");
  if (context.has(kSizes))
    LATHE_TRY(require_integer(context, kSizes));
  else
    LATHE_TRY(require_floating(context, kScales));
  if (attrs.coordinates == CoordinateMode::tf_crop_and_resize) {
    if (!context.has(kRoi)) return fail(ErrorCode::graph_invalid, "tf_crop_and_resize needs the input roi");
    LATHE_TRY(require_floating(context, kRoi));
    if (!context.assume_equal(volume(context.shape(kRoi)), static_cast<int64_t>(2 * axes)))
      return fail(ErrorCode::shape_mismatch, "roi has shape {}, but {} axes need {} values (all starts, then all ends)",
                  to_string(context.shape(kRoi)), axes, 2 * axes);
  }
  if (attrs.mode != ResizeMode::nearest) LATHE_TRY(require_numeric(context, 0));
  return {};
}

}  // namespace

Result<> infer_resize(InferContext& context) {
  LATHE_ASSIGN(const Ints axes, resized_axes(context.attrs<ResizeAttrs>(), context.rank(0)));
  LATHE_TRY(check_inputs(context, axes.size()));
  const Shape& x = context.shape(0);
  Shape shape = x;
  LATHE_TRY(context.has(kSizes) ? apply_sizes(context, axes, shape) : apply_scales(context, axes, shape));
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] == Expr(0) && !context.assume_equal(shape[i], 0))
      return fail(ErrorCode::shape_mismatch, "input of shape {} is empty, so that it cannot be resized to {}",
                  to_string(x), to_string(shape));
  context.set(0, context.dtype(0), std::move(shape));
  return {};
}

Result<> eval_resize(EvalContext& context) {
  const ResizeAttrs& attrs = context.attrs<ResizeAttrs>();
  Tensor& y = context.output(0);
  if (y.volume() == 0) return {};
  LATHE_ASSIGN(const Ints axes, resized_axes(attrs, context.input(0).rank()));
  std::vector<double> values = to_doubles(context.input(0));
  Dims dims = context.input(0).dims();
  const std::vector<AxisPlan> plans = plan_axes(context, axes);
  for (size_t i = 0; i < axes.size(); ++i) {
    const AxisPlan& plan = plans[i];
    const bool whole = plan.roi_begin == 0 && plan.roi_end == 1;
    if (plan.scale == 1 && plan.input == plan.output && whole) continue;  // nothing moves
    values = resize_axis(attrs, values, dims, axes[i], plan);
    dims[static_cast<size_t>(axes[i])] = plan.output;
  }
  store(values, y);
  return {};
}

}  // namespace lathe
