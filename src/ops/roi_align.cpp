// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace lathe {
namespace {

// Where bins of a region lie along one axis. Coordinates are worked out in the type of the regions (f32 for narrower
// ones), each operation rounded, for the number of samples jumps with them.
template <class T>
struct Bins {
  T start, extent;  // of the region, in pixels
  int64_t bins, samples;

  Bins(T from, T to, int64_t count, const RoiAlignAttrs& attrs) : bins(count) {
    const T scale = static_cast<T>(attrs.spatial_scale), shift = static_cast<T>(attrs.half_pixel ? 0.5 : 0);
    start = from * scale - shift;
    extent = to * scale - shift - start;
    if (!attrs.half_pixel) extent = std::max(extent, T{1});
    samples = attrs.sampling_ratio > 0 ? attrs.sampling_ratio : samples_of(std::ceil(size()));
  }
  T size() const { return extent / static_cast<T>(bins); }
  T at(int64_t bin, int64_t sample) const {
    return start + static_cast<T>(bin) * size() + (static_cast<T>(sample) + T{0.5}) * size() / static_cast<T>(samples);
  }
  // A region of no size has none; one beyond all reason (its samples lie outside of the image) is cut down.
  static int64_t samples_of(T count) { return count >= 1 ? static_cast<int64_t>(std::min(count, T{65536})) : 0; }
};

// The two pixels around a position and their weights; none of those further than a pixel outside.
struct Taps {
  int64_t pixel[2] = {0, 0};
  double weight[2] = {0, 0};
};

template <class T>
Taps taps_at(T position, int64_t extent) {
  if (extent == 0 || !(position >= -1 && position <= static_cast<T>(extent))) return {};
  position = std::max(position, T{0});
  const auto low = static_cast<int64_t>(position);
  if (low >= extent - 1) return {{extent - 1, extent - 1}, {1, 0}};
  const T upper = position - static_cast<T>(low);
  return {{low, low + 1}, {T{1} - upper, upper}};
}

// One element of the result. The maximum is over the weighted neighbours of all samples, as ONNX's own cases have it.
template <class T>
double pool(const double* image, const Dims& dims, const Bins<T>& rows, const Bins<T>& columns, int64_t bin_y,
            int64_t bin_x, bool max) {
  double sum = 0, largest = 0;
  bool first = true;
  for (int64_t sy = 0; sy < rows.samples; ++sy) {
    const Taps y = taps_at(rows.at(bin_y, sy), dims[2]);
    for (int64_t sx = 0; sx < columns.samples; ++sx) {
      const Taps x = taps_at(columns.at(bin_x, sx), dims[3]);
      for (int i = 0; i < 4; ++i) {
        const double weight = y.weight[i / 2] * x.weight[i % 2];
        const double value = weight == 0 ? 0 : weight * image[y.pixel[i / 2] * dims[3] + x.pixel[i % 2]];
        sum += value;
        largest = first ? value : std::max(largest, value);
        first = false;
      }
    }
  }
  return max ? largest : sum / static_cast<double>(std::max<int64_t>(rows.samples * columns.samples, 1));
}

template <class T>
Result<> evaluate(EvalContext& context) {
  const auto& attrs = context.attrs<RoiAlignAttrs>();
  const std::vector<double> x = to_doubles(context.input(0)), regions = to_doubles(context.input(1));
  const Dims &dims = context.input(0).dims(), &result = context.output(0).dims();
  std::vector<double> values;
  values.reserve(static_cast<size_t>(context.output(0).volume()));
  for (int64_t r = 0; r < result[0]; ++r) {
    const int64_t n = context.input(2).at(r);
    if (n < 0 || n >= dims[0])
      return fail(ErrorCode::execution_failed, "roi_align: region {} is of image {}, but there are {}", r, n, dims[0]);
    const auto edge = [&](int64_t i) { return static_cast<T>(regions[static_cast<size_t>(r * 4 + i)]); };
    const Bins<T> rows(edge(1), edge(3), attrs.height, attrs), columns(edge(0), edge(2), attrs.width, attrs);
    for (int64_t c = 0; c < dims[1]; ++c)
      for (int64_t i = 0; i < attrs.height; ++i)
        for (int64_t j = 0; j < attrs.width; ++j)
          values.push_back(pool(x.data() + (n * dims[1] + c) * dims[2] * dims[3], dims, rows, columns, i, j,
                                attrs.mode == PoolingOp::max));
  }
  from_doubles(values, context.output(0));
  return {};
}

}  // namespace

Result<> infer_roi_align(InferContext& context) {
  const auto& attrs = context.attrs<RoiAlignAttrs>();
  if (attrs.height < 1 || attrs.width < 1 || attrs.sampling_ratio < 0 || !std::isfinite(attrs.spatial_scale))
    return fail(
        ErrorCode::attribute_invalid,
        "roi_align: {} x {} bins, {} samples and a scale of {}; at least one bin, no fewer than 0 samples and a "
        "finite scale are needed",
        attrs.height, attrs.width, attrs.sampling_ratio, attrs.spatial_scale);
  if (attrs.mode == PoolingOp::lp)
    return fail(ErrorCode::attribute_invalid, "roi_align: the mode is lp, expected average or max");
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(require_same_dtype(context, 0, 1));
  LATHE_TRY(require_integer(context, 2));
  LATHE_TRY(require_rank(context, 0, 4, 4));
  LATHE_TRY(require_rank(context, 1, 2, 2));
  LATHE_TRY(require_rank(context, 2, 1, 1));
  const Shape &x = context.shape(0), &regions = context.shape(1);
  if (!context.assume_equal(regions[1], 4) || !context.assume_equal(regions[0], context.shape(2)[0]))
    return fail(
        ErrorCode::shape_mismatch,
        "roi_align: regions have shape {} and their image numbers {}, but [regions, 4] and [regions] are needed",
        to_string(regions), to_string(context.shape(2)));
  context.set(0, context.dtype(0), {regions[0], x[1], attrs.height, attrs.width});
  return {};
}

Result<> eval_roi_align(EvalContext& context) {
  return context.input(0).dtype() == DType::f64 ? evaluate<double>(context) : evaluate<float>(context);
}

}  // namespace lathe
