// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/depthwise/strip.h"
#include "kernels/cpu/depthwise/windows.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using depthwise::kMaxPixels;
using depthwise::Strip;

// The rows of taps that lie inside of x.
struct RowRange {
  int64_t first, last;
};
RowRange rows_inside(int64_t corner, int64_t kernel, int64_t dilation, int64_t size) {
  RowRange range{0, kernel};
  while (range.first < kernel && corner + range.first * dilation < 0) ++range.first;
  while (range.last > range.first && corner + (range.last - 1) * dilation >= size) --range.last;
  return range;
}

// How many lanes of the vector at channel c exist.
template <bool kTail>
LATHE_INLINE Vec load_channels(const float* p, int lanes) {
  return kTail ? load_tail(p, lanes) : load(p);
}

struct FloatSums {
  using Sum = Vec;
  // Each loaded pixel serves all the taps that fall on it.
  template <int kKernel, int kStride, int kPixels, Checked kChecked>
  static void window(const Strip& strip, int64_t c, int lanes, Vec* out) {
    constexpr bool kEdge = kChecked != Checked::nothing, kTail = kChecked == Checked::pixels_and_channels;
    const RowRange rows = rows_inside(strip.corner[1], kKernel, 1, strip.in[1]);
    const float* x = strip.x + strip.corner[0] * strip.in_stride[0] + strip.corner[1] * strip.in_stride[1] +
                     strip.corner[2] * strip.in_stride[2] + c;
    const float* weights = strip.weights + c;
    Vec sums[kPixels];
    LATHE_UNROLL
    for (int p = 0; p < kPixels; ++p) sums[p] = zero();
    const int64_t pitch = strip.in_stride[2];
    for (int64_t h = rows.first; h < rows.last; ++h) {
      const float* row = x + h * strip.in_stride[1];
      Vec w[kKernel];
      LATHE_UNROLL
      for (int k = 0; k < kKernel; ++k) w[k] = load(weights + (h * kKernel + k) * strip.weight_stride);
      LATHE_UNROLL
      for (int j = 0; j < (kPixels - 1) * kStride + kKernel; ++j) {
        if (kEdge && static_cast<uint64_t>(strip.corner[2] + j) >= static_cast<uint64_t>(strip.in[2])) continue;
        const Vec value = load_channels<kTail>(row + j * pitch, lanes);
        LATHE_UNROLL
        for (int p = 0; p < kPixels; ++p) {
          const int k = j - p * kStride;
          if (k >= 0 && k < kKernel) sums[p] = mul_add(value, w[k], sums[p]);
        }
      }
    }
    LATHE_UNROLL
    for (int p = 0; p < kPixels; ++p) out[p] = sums[p];
  }

  // Any kernel and dilation.
  template <bool kTail>
  static void any(const Strip& strip, int64_t c, int lanes, Vec* sums) {
    const depthwise::Shape& shape = *strip.shape;
    RowRange range[3];
    for (int d = 0; d < 2; ++d)
      range[d] = rows_inside(strip.corner[d], shape.kernel[d], shape.dilation[d], strip.in[d]);
    for (int p = 0; p < strip.pixels; ++p) {
      const int64_t left = strip.corner[2] + p * shape.stride[2];
      range[2] = rows_inside(left, shape.kernel[2], shape.dilation[2], strip.in[2]);
      Vec sum = zero();
      for (int64_t d = range[0].first; d < range[0].last; ++d)
        for (int64_t h = range[1].first; h < range[1].last; ++h) {
          const float* row = strip.x + (strip.corner[0] + d * shape.dilation[0]) * strip.in_stride[0] +
                             (strip.corner[1] + h * shape.dilation[1]) * strip.in_stride[1] +
                             left * strip.in_stride[2] + c;
          const float* weights = strip.weights + (d * shape.kernel[1] + h) * shape.kernel[2] * strip.weight_stride + c;
          for (int64_t w = range[2].first; w < range[2].last; ++w)
            sum = mul_add(load_channels<kTail>(row + w * shape.dilation[2] * strip.in_stride[2], lanes),
                          load(weights + w * strip.weight_stride), sum);
        }
      sums[p] = sum;
    }
  }
};

// clip(sums + bias + residual) to the output.
template <bool kTail>
void finish_linear(const Strip& strip, const Vec* sums, int64_t c, int lanes) {
  const BoundEpilogue& epilogue = *strip.epilogue;
  const Vec low = broadcast(epilogue.low), high = broadcast(epilogue.high);
  const Vec bias = epilogue.bias ? load_channels<kTail>(epilogue.bias + c, lanes) : zero();
  for (int p = 0; p < strip.pixels; ++p) {
    Vec value = sums[p] + bias;
    if (epilogue.residual >= 0) value += load_channels<kTail>(strip.where->operand[epilogue.residual][p] + c, lanes);
    value = min_or_second(high, max_or_second(low, value));
    if (kTail)
      store_tail(strip.where->out[p] + c, lanes, value);
    else
      store(strip.where->out[p] + c, value);
  }
}

// Sums every vector of channels and runs the epilogue.
void run(const Strip& strip, const SumFunctions<Vec>& sum) {
  alignas(kVecBytes) float scratch[kMaxPixels * kMaxTileColumns];
  const bool linear = strip.epilogue->linear;
  for (int64_t block = strip.first_channel; block < strip.last_channel; block += kMaxTileColumns) {
    const int columns = static_cast<int>(std::min<int64_t>(kMaxTileColumns, strip.last_channel - block));
    for (int c = 0; c < columns; c += kLanes) {
      Vec sums[kMaxPixels];
      const int lanes = std::min(columns - c, kLanes);
      const bool tail = lanes < kLanes;
      (tail ? sum.tail : sum.whole)(strip, block + c, lanes, sums);
      if (linear && !tail)
        finish_linear<false>(strip, sums, block + c, lanes);
      else if (linear)
        finish_linear<true>(strip, sums, block + c, lanes);
      else
        for (int p = 0; p < strip.pixels; ++p) store(scratch + p * kMaxTileColumns + c, sums[p]);
    }
    if (!linear) finish_tile(*strip.epilogue, *strip.where, scratch, kMaxTileColumns, strip.pixels, block, columns);
  }
}

}  // namespace

void depthwise_strip(const Strip& strip) { run(strip, functions_of<FloatSums, 3, 5>(strip)); }

}  // namespace lathe::cpu::LATHE_ISA
