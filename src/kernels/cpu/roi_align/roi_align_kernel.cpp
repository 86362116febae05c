// SPDX-License-Identifier: Apache-2.0
// Kernel `roi_align`: regions of images, averaged (or their largest weighted elements) over a grid of bins.
//   program  none
//   params   {largest, samples per bin and axis (0: as many as pixels), bits of the f32 scale, half_pixel}
//   inputs   0: x, f32 [images, channels, height, width]; the channels or the columns must be contiguous
//            1: regions, f32 [regions, 4]: x1, y1, x2, y2; 2: their images, i64 or i32 [regions]
//   outputs  0: y, f32 [regions, channels, bins down, bins across], any strides
// A region whose image is not there gives 0.
//
// An average is separable: the samples of a bin put weights on rows of pixels and on columns, whichever samples they
// are. So a bin is a blend of a few rows and columns, however many samples it takes.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/resize/resize.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMaxSamples = 65536;
constexpr int kMaxBlend = 256;  // pixels that are blended at once
constexpr int64_t kChannelBlock = 32;

struct Params {
  bool largest;
  int64_t samples;
  float scale;
  bool half_pixel;
};

// Two pixels and their weights.
struct Taps {
  int64_t pixel[2] = {0, 0};
  float weight[2] = {0, 0};
};

// Where the bins of a region lie along one axis: in f32, each operation rounded, for the number of samples jumps with
// it.
struct Bins {
  float start, size;
  int64_t samples, extent;

  Bins(float from, float to, int64_t bins, int64_t pixels, const Params& params) : extent(pixels) {
    const float shift = params.half_pixel ? 0.5f : 0.0f;
    start = from * params.scale - shift;
    float length = to * params.scale - shift - start;
    if (!params.half_pixel) length = std::max(length, 1.0f);
    size = length / static_cast<float>(bins);
    const float wanted = std::ceil(size);
    samples = params.samples;
    if (samples == 0 && wanted >= 1) samples = static_cast<int64_t>(std::min(wanted, float{kMaxSamples}));
  }
  Taps taps(int64_t bin, int64_t sample) const {
    float at = start + static_cast<float>(bin) * size +
               (static_cast<float>(sample) + 0.5f) * size / static_cast<float>(samples);
    if (extent == 0 || !(at >= -1 && at <= static_cast<float>(extent))) return {};
    at = std::max(at, 0.0f);
    const auto low = static_cast<int64_t>(at);
    if (low >= extent - 1) return {{extent - 1, extent - 1}, {1, 0}};
    const float upper = at - static_cast<float>(low);
    return {{low, low + 1}, {1 - upper, upper}};
  }
};

// What each bin averages along one axis: `count` pixels from `first` on.
struct Spans {
  struct Span {
    int64_t first = 0, count = 0;
    const float* weights = nullptr;
  };
  Span* spans = nullptr;
  float* weights = nullptr;

  // Neighbouring bins share two pixels at most.
  static size_t bytes(int64_t bins, int64_t extent) {
    const size_t needed =
        static_cast<size_t>(bins) * sizeof(Span) + static_cast<size_t>(extent + 2 * bins) * sizeof(float);
    return (needed + 63) / 64 * 64;
  }
  Spans(std::byte* memory, int64_t count)
      : spans(reinterpret_cast<Span*>(memory)), weights(reinterpret_cast<float*>(spans + count)) {}

  void fill(const Bins& bins, int64_t count) {
    float* next = weights;
    for (int64_t bin = 0; bin < count; ++bin) {
      int64_t low = INT64_MAX, high = -1;
      const auto each = [&](auto f) {
        for (int64_t s = 0; s < bins.samples; ++s) {
          const Taps taps = bins.taps(bin, s);
          for (int i = 0; i < 2; ++i)
            if (taps.weight[i] != 0) f(taps.pixel[i], taps.weight[i]);
        }
      };
      each([&](int64_t pixel, float) { low = std::min(low, pixel), high = std::max(high, pixel); });
      Span& span = spans[bin];
      span = {high < 0 ? 0 : low, high < 0 ? 0 : high - low + 1, next};
      std::fill_n(next, span.count, 0.0f);
      each([&](int64_t pixel, float weight) { next[pixel - low] += weight / static_cast<float>(bins.samples); });
      next += span.count;
    }
  }
};

class RoiAlignKernel final : public Kernel {
 public:
  explicit RoiAlignKernel(const Params& params) : params_(params) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return worker_bytes(inputs[0], outputs[0]) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  struct Region;
  static size_t row_bytes(const TensorArg& x) {
    return static_cast<size_t>(std::max(x.dims[1], x.dims[3]) + 15) / 16 * 16 * sizeof(float);
  }
  static size_t worker_bytes(const TensorArg& x, const TensorArg& y) {
    return Spans::bytes(y.dims[2], x.dims[2]) + Spans::bytes(y.dims[3], x.dims[3]) + row_bytes(x);
  }
  const Params params_;
};

Result<> RoiAlignKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 3 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "roi_align: {} inputs and {} outputs given, 3 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg &x = inputs[0], &regions = inputs[1], &images = inputs[2], &y = outputs[0];
  if (x.dtype != DType::f32 || regions.dtype != DType::f32 || y.dtype != DType::f32 ||
      (images.dtype != DType::i64 && images.dtype != DType::i32))
    return fail(ErrorCode::dtype_unsupported, "roi_align: {}, {}, {} to {}; f32, f32 and i64 or i32 are supported",
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
struct RoiAlignKernel::Region {
  const TensorArg &x, &y;
  const float* image;
  float* result;
  Bins rows, columns;
  Spans down, across;
  float* line;

  const float* pixel(int64_t c, int64_t row, int64_t column) const {
    return image + c * x.strides[1] + row * x.strides[2] + column * x.strides[3];
  }
  float& bin(int64_t c, int64_t i, int64_t j) const {
    return result[c * y.strides[1] + i * y.strides[2] + j * y.strides[3]];
  }

  // All channels of one bin, blended in portions so that any number of pixels fits.
  void average_pixels(int64_t i, int64_t j) const {
    static const auto blend = LATHE_ISA_SELECT(blend_rows);
    const bool direct = y.strides[1] == 1;
    float* target = direct ? &bin(0, i, j) : line;
    const float* taps[kMaxBlend] = {pixel(0, 0, 0)};
    float weights[kMaxBlend] = {0};
    int count = 0;
    const Spans::Span &u = down.spans[i], &v = across.spans[j];
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
      std::fill_n(target, x.dims[1], 0.0f);
    else
      blend(taps, weights, count, x.dims[1], target);
    for (int64_t c = 0; !direct && c < x.dims[1]; ++c) bin(c, i, j) = line[c];
  }

  // A row of bins of one channel: the rows of pixels become one, then its columns.
  void average_rows(int64_t c, int64_t i) const {
    static const auto blend = LATHE_ISA_SELECT(blend_rows);
    int64_t low = INT64_MAX, high = 0;
    for (int64_t j = 0; j < y.dims[3]; ++j) {
      if (across.spans[j].count == 0) continue;
      low = std::min(low, across.spans[j].first);
      high = std::max(high, across.spans[j].first + across.spans[j].count);
    }
    const Spans::Span& u = down.spans[i];
    const bool is_empty = u.count == 0 || low >= high;
    const float* taps[kMaxBlend];
    float weights[kMaxBlend];
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
      const Spans::Span& v = across.spans[j];
      float sum = 0;
      for (int64_t q = 0; !is_empty && q < v.count; ++q) sum += v.weights[q] * line[v.first - low + q];
      bin(c, i, j) = sum;
    }
  }

  // The largest weighted neighbour of all samples; samples beyond the image count as 0.
  float largest(int64_t c, int64_t i, int64_t j) const {
    if (rows.samples * columns.samples == 0) return 0;
    float most = -__builtin_inff();
    for (int64_t sy = 0; sy < rows.samples; ++sy) {
      const Taps u = rows.taps(i, sy);
      if (u.weight[0] + u.weight[1] == 0) {
        most = std::max(most, 0.0f);
        continue;
      }
      for (int64_t sx = 0; sx < columns.samples; ++sx) {
        const Taps v = columns.taps(j, sx);
        for (int k = 0; k < 4; ++k) {
          const float weight = u.weight[k / 2] * v.weight[k % 2];
          most = std::max(most, weight == 0 ? 0 : weight * *pixel(c, u.pixel[k / 2], v.pixel[k % 2]));
        }
      }
    }
    return most;
  }
};

// A unit of work is a row of bins where channels are contiguous, else some channels.
void RoiAlignKernel::run(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &regions = launch.inputs[1], &images = launch.inputs[2];
  const TensorArg& y = launch.outputs[0];
  const bool by_pixels = x.strides[1] == 1 && (x.strides[3] != 1 || x.dims[1] >= x.dims[3]);
  const bool by_bins = by_pixels && !params_.largest;
  const int64_t parts = by_bins ? y.dims[2] : (x.dims[1] + kChannelBlock - 1) / kChannelBlock;
  launch.pool.parallel_for(y.dims[0] * parts, 1, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = launch.workspace + worker_bytes(x, y) * static_cast<size_t>(worker);
    std::byte* second = own + Spans::bytes(y.dims[2], x.dims[2]);
    auto* line = reinterpret_cast<float*>(second + Spans::bytes(y.dims[3], x.dims[3]));
    int64_t filled = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t r = unit / parts, part = unit % parts;
      const int64_t n = images.dtype == DType::i64 ? images.as<int64_t>()[r * images.strides[0]]
                                                   : images.as<int32_t>()[r * images.strides[0]];
      const bool is_there = n >= 0 && n < x.dims[0];
      const auto edge = [&](int64_t i) { return regions.as<float>()[r * regions.strides[0] + i * regions.strides[1]]; };
      Region region{x,
                    y,
                    x.as<float>() + (is_there ? n : 0) * x.strides[0],
                    y.as<float>() + r * y.strides[0],
                    Bins(edge(1), edge(3), y.dims[2], is_there ? x.dims[2] : 0, params_),
                    Bins(edge(0), edge(2), y.dims[3], is_there ? x.dims[3] : 0, params_),
                    Spans(own, y.dims[2]),
                    Spans(second, y.dims[3]),
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
  const std::span<const int64_t> p = record.params;
  if (record.program || p.size() != 4 || p[0] < 0 || p[0] > 1 || p[1] < 0 || p[1] > kMaxSamples || p[2] < 0 ||
      p[2] > UINT32_MAX || p[3] < 0 || p[3] > 1)
    return fail(ErrorCode::plan_malformed, "roi_align: the parameters of the record are not valid");
  const auto scale = std::bit_cast<float>(static_cast<uint32_t>(p[2]));
  return std::make_unique<RoiAlignKernel>(Params{p[0] == 1, p[1], scale, p[3] == 1});
}

}  // namespace lathe::cpu
