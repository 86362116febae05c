// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/even_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/divide.h"

namespace lathe::cpu::conv {

using gemm::Needs;
using gemm::Tap;

// Zeros behind a line are those in front of the next one, likewise lines and planes: a size holds what is not zero, the
// output, and so much of what taps read that the rest is zeros of the next.
EvenImage::EvenImage(const Geometry& geometry) : geometry_(geometry) {
  const ConvShape& shape = geometry.shape;
  int64_t furthest = 0;  // a tap's step from its row
  for (int d = 0; d < 3; ++d) {
    const int64_t stride = shape.stride[d], reach = (shape.kernel[d] - 1) * shape.dilation[d];
    const int64_t wanted = geometry.out[d] + (d == 2 ? ceil_div(reach - stride + 1, stride) : reach / stride);
    const int64_t held = std::min(wanted, ceil_div(geometry.in[d] + shape.pad[d], stride));
    size_[d] = std::max({geometry.out[d], held, wanted - shape.pad[d] / stride});
    if (d < 2) phases_[d] = std::min(stride, reach + 1);
    rows_ = (d == 0 ? geometry.batch - 1 : rows_ - 1) * size_[d] + geometry.out[d];
    furthest = furthest * size_[d] + reach / stride;
  }
  lines_ = ceil_div(rows_ + furthest + 1, size_[2]);
}

Needs EvenImage::needs(const ConvConfig& config) const {
  ConvShape shape = geometry_.shape;
  if (joins_taps()) shape.in_channels *= std::exchange(shape.kernel[2], 1);
  return {.taps = needs_of(shape, config).taps, .edge_floats = shape.out_channels, .is_narrow = true, .is_even = true};
}

void EvenImage::write_taps(const ConvConfig& config, Tap* taps) const {
  const ConvShape& shape = geometry_.shape;
  const int64_t columns = joins_taps() ? 1 : shape.kernel[2];
  const int64_t depth = shape.group_inputs() * shape.kernel[2] / columns;
  const int64_t segments = needs(config).taps / (shape.kernel[0] * shape.kernel[1] * columns);
  const int64_t block = segments == 1 ? depth : config.blocking.k_block;
  int64_t k = 0;
  for (int64_t d = 0; d < shape.kernel[0]; ++d)
    for (int64_t h = 0; h < shape.kernel[1]; ++h)
      for (int64_t w = 0; w < columns; ++w) {
        const int64_t plane = d * shape.dilation[0], line = h * shape.dilation[1];
        const int64_t phase = plane % shape.stride[0] * phases_[1] + line % shape.stride[1];
        const int64_t offset = phase * phase_floats() +
                               (plane / shape.stride[0] * size_[1] + line / shape.stride[1]) * this->line() +
                               w * shape.dilation[2] * pixel();
        for (int64_t c = 0; c < depth; c += block)
          *taps++ = {offset + c, k + c, static_cast<int32_t>(std::min(block, depth - c)), 0};
        k += depth;
      }
}

void EvenImage::copy(const float* x, float* to, ThreadPool& pool) const {
  const Geometry& g = geometry_;
  const int64_t begin = std::min(g.shape.pad[2], line() / pixel()) * pixel();
  const int64_t pixels = std::min(g.in[2], line() / pixel() - begin / pixel());
  constexpr int64_t kLeastCopy = 16 << 10;
  const int64_t grain = std::max<int64_t>(1, kLeastCopy / line());
  pool.parallel_for(phases_[0] * phases_[1] * lines_, grain, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t phase = i / lines_, index = i % lines_;
      const int64_t n = index / size_[1] / size_[0];
      const int64_t d = index / size_[1] % size_[0] * g.shape.stride[0] + phase / phases_[1] - g.shape.pad[0];
      const int64_t h = index % size_[1] * g.shape.stride[1] + phase % phases_[1] - g.shape.pad[1];
      float* out = to + i * line();
      if (n >= g.batch || d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1] || pixels <= 0) {
        std::fill_n(out, line(), 0.0f);
        continue;
      }
      const float* from = x + n * g.batch_stride + d * g.in_stride[0] + h * g.in_stride[1];
      std::fill_n(out, begin, 0.0f);
      out += begin;
      const bool is_dense = g.in_stride[2] == pixel();
      const int64_t run = is_dense ? pixels * pixel() : pixel();
      for (int64_t w = 0; w < (is_dense ? 1 : pixels); ++w, out += run, from += g.in_stride[2])
        std::memcpy(out, from, static_cast<size_t>(run) * sizeof(float));
      std::fill(out, to + (i + 1) * line(), 0.0f);
    }
  });
}

gemm::TileTaps EvenRows::fill(int64_t first, int count, gemm::TileScratch& scratch) const {
  const auto& out = image_.geometry().out;
  const auto& size = image_.size_;
  const float* a = copy_ + first * image_.step();
  for (int r = 0; r < count; ++r, a += image_.step()) scratch.a_rows[r] = a;
  for (int r = 0; r < count;) {
    int64_t line = (first + r) / size[2];
    const int64_t column = (first + r) % size[2];
    const int run = static_cast<int>(std::min<int64_t>(count - r, size[2] - column));
    const int64_t h = line % size[1], d = (line /= size[1]) % size[0], n = line / size[0];
    const bool is_inside = d < out[0] && h < out[1];
    const int pixels = is_inside ? static_cast<int>(std::clamp<int64_t>(out[2] - column, 0, run)) : 0;
    if (pixels > 0) out_.fill(((n * out[0] + d) * out[1] + h) * out[2] + column, pixels, r, scratch.where);
    if (pixels < run) out_.skip(scratch.edge, r + pixels, r + run, scratch.where);
    r += run;
  }
  return {scratch.a_rows, taps_};
}

}  // namespace lathe::cpu::conv
