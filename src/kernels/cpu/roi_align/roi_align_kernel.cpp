// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/roi_align/roi_align.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/resize/resize.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMaxSamples = RoiAlignParams::kMaxSamples;
constexpr int kMaxBlend = 256;  // pixels that are blended at once
constexpr int64_t kChannelBlock = 32;

// y[c] = sum over t of weights[t] * taps[t][c]
void blend(const float* const* taps, const float* weights, int count, int64_t n, float* y) {
  static const auto blend = LATHE_ISA_SELECT(blend_rows);
  blend(taps, weights, count, n, y);
}
void blend(const double* const* taps, const double* weights, int count, int64_t n, double* y) {
  for (int64_t c = 0; c < n; ++c) y[c] = weights[0] * taps[0][c];  // y may be the first of them
  for (int t = 1; t < count; ++t)
    for (int64_t c = 0; c < n; ++c) y[c] += weights[t] * taps[t][c];
}

// Two pixels and their weights.
template <class T>
struct Taps {
  int64_t pixel[2] = {0, 0};
  T weight[2] = {0, 0};
};

// Where the bins of a region lie along one axis: in the type of the elements, each operation rounded, for the number of
// samples jumps with it.
template <class T>
struct Bins {
  T start, size;
  int64_t samples, extent;

  Bins(T from, T to, int64_t bins, int64_t pixels, const RoiAlignParams& params) : extent(pixels) {
    const T scale = static_cast<T>(params.scale), shift = static_cast<T>(params.half_pixel ? 0.5 : 0);
    start = from * scale - shift;
    T length = to * scale - shift - start;
    if (!params.half_pixel) length = std::max(length, T{1});
    size = length / static_cast<T>(bins);
    const T wanted = std::ceil(size);
    samples = params.samples;
    if (samples == 0 && wanted >= 1) samples = static_cast<int64_t>(std::min(wanted, T{kMaxSamples}));
  }
  Taps<T> taps(int64_t bin, int64_t sample) const {
    T at = start + static_cast<T>(bin) * size + (static_cast<T>(sample) + T{0.5}) * size / static_cast<T>(samples);
    if (extent == 0 || !(at >= -1 && at <= static_cast<T>(extent))) return {};
    at = std::max(at, T{0});
    const auto low = static_cast<int64_t>(at);
    if (low >= extent - 1) return {{extent - 1, extent - 1}, {1, 0}};
    const T upper = at - static_cast<T>(low);
    return {{low, low + 1}, {1 - upper, upper}};
  }
};

// What each bin averages along one axis: `count` pixels from `first` on.
template <class T>
struct Spans {
  struct Span {
    int64_t first = 0, count = 0;
    const T* weights = nullptr;
  };
  Span* spans = nullptr;
  T* weights = nullptr;

  // Neighbouring bins share two pixels at most.
  static size_t bytes(int64_t bins, int64_t extent) {
    const size_t needed = static_cast<size_t>(bins) * sizeof(Span) + static_cast<size_t>(extent + 2 * bins) * sizeof(T);
    return round_up(needed, 64);
  }
  Spans(std::byte* memory, int64_t count)
      : spans(reinterpret_cast<Span*>(memory)), weights(reinterpret_cast<T*>(spans + count)) {}

  void fill(const Bins<T>& bins, int64_t count) {
    T* next = weights;
    for (int64_t bin = 0; bin < count; ++bin) {
      int64_t low = INT64_MAX, high = -1;
      const auto each = [&](auto f) {
        for (int64_t s = 0; s < bins.samples; ++s) {
          const Taps<T> taps = bins.taps(bin, s);
          for (int i = 0; i < 2; ++i)
            if (taps.weight[i] != 0) f(taps.pixel[i], taps.weight[i]);
        }
      };
      each([&](int64_t pixel, T) { low = std::min(low, pixel), high = std::max(high, pixel); });
      Span& span = spans[bin];
      span = {high < 0 ? 0 : low, high < 0 ? 0 : high - low + 1, next};
      std::fill_n(next, span.count, T{0});
      each([&](int64_t pixel, T weight) { next[pixel - low] += weight / static_cast<T>(bins.samples); });
      next += span.count;
    }
  }
};

class RoiAlignKernel final : public Kernel {
 public:
  explicit RoiAlignKernel(const RoiAlignParams& params) : params_(params) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    const bool wide = inputs[0].dtype == DType::f64;
    return (wide ? worker_bytes<double>(inputs[0], outputs[0]) : worker_bytes<float>(inputs[0], outputs[0])) *
           static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override {
    launch.inputs[0].dtype == DType::f64 ? run_as<double>(launch) : run_as<float>(launch);
  }

 private:
  template <class T>
  void run_as(const Launch& launch) const;
  template <class T>
  struct Region;
  template <class T>
  static size_t row_bytes(const TensorArg& x) {
    return static_cast<size_t>(std::max(x.dims[1], x.dims[3]) + 15) / 16 * 16 * sizeof(T);
  }
  template <class T>
  static size_t worker_bytes(const TensorArg& x, const TensorArg& y) {
    return Spans<T>::bytes(y.dims[2], x.dims[2]) + Spans<T>::bytes(y.dims[3], x.dims[3]) + row_bytes<T>(x);
  }
  const RoiAlignParams params_;
};

Result<> RoiAlignKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 3 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "roi_align: {} inputs and {} outputs given, 3 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg &x = inputs[0], &regions = inputs[1], &images = inputs[2], &y = outputs[0];
  if ((x.dtype != DType::f32 && x.dtype != DType::f64) || regions.dtype != x.dtype || y.dtype != x.dtype ||
      !is_integer(images.dtype))
    return fail(ErrorCode::dtype_unsupported, "roi_align: {}, {}, {} to {}, all f32 or all f64, and integers, expected",
                name_of(x.dtype), name_of(regions.dtype), name_of(images.dtype), name_of(y.dtype));
  const int64_t count = y.dims[0];
  if (x.rank != 4 || y.rank != 4 || regions.rank != 2 || images.rank != 1 || regions.dims[1] != 4 ||
      regions.dims[0] != count || images.dims[0] != count || y.dims[1] != x.dims[1])
    return fail(ErrorCode::shape_mismatch,
                "roi_align: regions {} x {} of images of {} channels, {} image numbers, and {} results of {} channels",
                regions.dims[0], regions.dims[1], x.dims[1], images.dims[0], count, y.dims[1]);
  if (x.strides[1] != 1 && x.strides[3] != 1 && x.dims[1] != 1 && x.dims[3] != 1)
    return fail(ErrorCode::shape_mismatch, "roi_align: neither channels nor columns of its input are contiguous");
  return {};
}

// One region and all that is needed to make its bins.
template <class T>
struct RoiAlignKernel::Region {
  const TensorArg &x, &y;
  const T* image;
  T* result;
  Bins<T> rows, columns;
  Spans<T> down, across;
  T* line;

  const T* pixel(int64_t c, int64_t row, int64_t column) const {
    return image + c * x.strides[1] + row * x.strides[2] + column * x.strides[3];
  }
  T& bin(int64_t c, int64_t i, int64_t j) const {
    return result[c * y.strides[1] + i * y.strides[2] + j * y.strides[3]];
  }

  // All channels of one bin, blended in portions so that any number of pixels fits.
  void average_pixels(int64_t i, int64_t j) const {
    const bool direct = y.strides[1] == 1;
    T* target = direct ? &bin(0, i, j) : line;
    const T* taps[kMaxBlend] = {pixel(0, 0, 0)};
    T weights[kMaxBlend] = {0};
    int count = 0;
    const typename Spans<T>::Span &u = down.spans[i], &v = across.spans[j];
    for (int64_t p = 0; p < u.count; ++p)
      for (int64_t q = 0; q < v.count; ++q) {
        if (count == kMaxBlend) {
          blend(taps, weights, count, x.dims[1], target);
          taps[0] = target, weights[0] = 1, count = 1;
        }
        taps[count] = pixel(0, u.first + p, v.first + q);
        weights[count++] = u.weights[p] * v.weights[q];
      }
    if (count == 0)
      std::fill_n(target, x.dims[1], T{0});
    else
      blend(taps, weights, count, x.dims[1], target);
    for (int64_t c = 0; !direct && c < x.dims[1]; ++c) bin(c, i, j) = line[c];
  }

  // A row of bins of one channel: the rows of pixels become one, then its columns.
  void average_rows(int64_t c, int64_t i) const {
    int64_t low = INT64_MAX, high = 0;
    for (int64_t j = 0; j < y.dims[3]; ++j) {
      if (across.spans[j].count == 0) continue;
      low = std::min(low, across.spans[j].first);
      high = std::max(high, across.spans[j].first + across.spans[j].count);
    }
    const typename Spans<T>::Span& u = down.spans[i];
    const bool is_empty = u.count == 0 || low >= high;
    const T* taps[kMaxBlend];
    T weights[kMaxBlend];
    int count = 0;
    for (int64_t p = 0; !is_empty && p < u.count; ++p) {
      if (count == kMaxBlend) {
        blend(taps, weights, count, high - low, line);
        taps[0] = line, weights[0] = 1, count = 1;
      }
      taps[count] = pixel(c, u.first + p, low);
      weights[count++] = u.weights[p];
    }
    if (!is_empty) blend(taps, weights, count, high - low, line);
    for (int64_t j = 0; j < y.dims[3]; ++j) {
      const typename Spans<T>::Span& v = across.spans[j];
      T sum = 0;
      for (int64_t q = 0; !is_empty && q < v.count; ++q) sum += v.weights[q] * line[v.first - low + q];
      bin(c, i, j) = sum;
    }
  }

  // The largest weighted neighbour of all samples; samples beyond the image count as 0.
  T largest(int64_t c, int64_t i, int64_t j) const {
    if (rows.samples * columns.samples == 0) return 0;
    T most = -std::numeric_limits<T>::infinity();
    for (int64_t sy = 0; sy < rows.samples; ++sy) {
      const Taps<T> u = rows.taps(i, sy);
      if (u.weight[0] + u.weight[1] == 0) {
        most = std::max(most, T{0});
        continue;
      }
      for (int64_t sx = 0; sx < columns.samples; ++sx) {
        const Taps<T> v = columns.taps(j, sx);
        for (int k = 0; k < 4; ++k) {
          const T weight = u.weight[k / 2] * v.weight[k % 2];
          most = std::max(most, weight == 0 ? T{0} : weight * *pixel(c, u.pixel[k / 2], v.pixel[k % 2]));
        }
      }
    }
    return most;
  }
};

// A unit of work is a row of bins where channels are contiguous, else some channels.
template <class T>
void RoiAlignKernel::run_as(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &regions = launch.inputs[1], &images = launch.inputs[2];
  const TensorArg& y = launch.outputs[0];
  const bool by_pixels = x.strides[1] == 1 && (x.strides[3] != 1 || x.dims[1] >= x.dims[3]);
  const bool by_bins = by_pixels && !params_.largest;
  const int64_t units_per_region = by_bins ? y.dims[2] : ceil_div(x.dims[1], kChannelBlock);
  launch.pool.parallel_for(y.dims[0] * units_per_region, 1, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = launch.workspace + worker_bytes<T>(x, y) * static_cast<size_t>(worker);
    std::byte* second = own + Spans<T>::bytes(y.dims[2], x.dims[2]);
    auto* line = reinterpret_cast<T*>(second + Spans<T>::bytes(y.dims[3], x.dims[3]));
    int64_t filled = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t r = unit / units_per_region, part = unit % units_per_region;
      const int64_t n = integer_at(images, r * images.strides[0]);
      const bool is_there = n >= 0 && n < x.dims[0];
      const auto edge = [&](int64_t i) { return regions.as<T>()[r * regions.strides[0] + i * regions.strides[1]]; };
      Region<T> region{x,
                       y,
                       x.as<T>() + (is_there ? n : 0) * x.strides[0],
                       y.as<T>() + r * y.strides[0],
                       Bins<T>(edge(1), edge(3), y.dims[2], is_there ? x.dims[2] : 0, params_),
                       Bins<T>(edge(0), edge(2), y.dims[3], is_there ? x.dims[3] : 0, params_),
                       Spans<T>(own, y.dims[2]),
                       Spans<T>(second, y.dims[3]),
                       line};
      if (!params_.largest && filled != r) {
        region.down.fill(region.rows, y.dims[2]);
        region.across.fill(region.columns, y.dims[3]);
        filled = r;
      }
      if (by_bins) {
        for (int64_t j = 0; j < y.dims[3]; ++j) region.average_pixels(part, j);
        continue;
      }
      for (int64_t c = part * kChannelBlock; c < std::min(x.dims[1], (part + 1) * kChannelBlock); ++c)
        for (int64_t i = 0; i < y.dims[2]; ++i) {
          if (!params_.largest) region.average_rows(c, i);
          for (int64_t j = 0; params_.largest && j < y.dims[3]; ++j) region.bin(c, i, j) = region.largest(c, i, j);
        }
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_roi_align(const Record& record) {
  const auto params = decode_params<RoiAlignParams>(record.params);
  if (record.program || !params || params->samples < 0 || params->samples > kMaxSamples ||
      !std::isfinite(params->scale))
    return refuse_params("roi_align");
  return std::make_unique<RoiAlignKernel>(*params);
}

}  // namespace lathe::cpu
