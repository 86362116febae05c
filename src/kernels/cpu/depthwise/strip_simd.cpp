// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise/strip.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/simd.h"

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

// Sums of one vector of channels, of which `lanes` exist, for every pixel of a strip.
using SumFunction = void (*)(const Strip& strip, int64_t c, int lanes, Vec* sums);

// What a window checks before it reads: whether its pixels lie inside of x, and whether every lane's channel exists.
enum class Checked { nothing, pixels, pixels_and_channels };

// Each loaded pixel serves all the taps that fall on it.
template <int kKernel, int kStride, int kPixels, Checked kChecked>
void sum_window(const Strip& strip, int64_t c, int lanes, Vec* out) {
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
void sum_any(const Strip& strip, int64_t c, int lanes, Vec* sums) {
  const depthwise::Shape& shape = *strip.shape;
  RowRange range[3];
  for (int d = 0; d < 2; ++d) range[d] = rows_inside(strip.corner[d], shape.kernel[d], shape.dilation[d], strip.in[d]);
  for (int p = 0; p < strip.pixels; ++p) {
    const int64_t left = strip.corner[2] + p * shape.stride[2];
    range[2] = rows_inside(left, shape.kernel[2], shape.dilation[2], strip.in[2]);
    Vec sum = zero();
    for (int64_t d = range[0].first; d < range[0].last; ++d)
      for (int64_t h = range[1].first; h < range[1].last; ++h) {
        const float* row = strip.x + (strip.corner[0] + d * shape.dilation[0]) * strip.in_stride[0] +
                           (strip.corner[1] + h * shape.dilation[1]) * strip.in_stride[1] + left * strip.in_stride[2] +
                           c;
        const float* weights = strip.weights + (d * shape.kernel[1] + h) * shape.kernel[2] * strip.weight_stride + c;
        for (int64_t w = range[2].first; w < range[2].last; ++w)
          sum = mul_add(load_channels<kTail>(row + w * shape.dilation[2] * strip.in_stride[2], lanes),
                        load(weights + w * strip.weight_stride), sum);
      }
    sums[p] = sum;
  }
}

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

struct SumFunctions {
  SumFunction whole, tail;  // of vectors of which every channel exists, and of others
};

// Sums every vector of channels and runs the epilogue.
void run(const Strip& strip, const SumFunctions& sum) {
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

template <int kKernel, int kStride, Checked kChecked, int... kPixel>
SumFunction window_of(int pixels, std::integer_sequence<int, kPixel...>) {
  static constexpr SumFunction functions[] = {sum_window<kKernel, kStride, kPixel + 1, kChecked>...};
  return functions[pixels - 1];
}
template <int kKernel, int kStride>
SumFunctions window_of(const Strip& strip) {
  const int64_t last = strip.corner[2] + (strip.pixels - 1) * kStride + kKernel;
  const bool edge = strip.corner[2] < 0 || last > strip.in[2];
  constexpr std::make_integer_sequence<int, kMaxPixels> sequence;
  return {edge ? window_of<kKernel, kStride, Checked::pixels>(strip.pixels, sequence)
               : window_of<kKernel, kStride, Checked::nothing>(strip.pixels, sequence),
          window_of<kKernel, kStride, Checked::pixels_and_channels>(strip.pixels, sequence)};
}

}  // namespace

void depthwise_strip(const Strip& strip) {
  const depthwise::Shape& shape = *strip.shape;
  const int64_t kernel = shape.kernel[2], stride = shape.stride[2];
  const bool square = shape.kernel[0] == 1 && shape.kernel[1] == kernel && shape.dilation[1] == 1 &&
                      shape.dilation[2] == 1 && strip.corner[0] >= 0 && strip.corner[0] < strip.in[0];
  if (square && kernel == 3 && stride == 1) return run(strip, window_of<3, 1>(strip));
  if (square && kernel == 3 && stride == 2) return run(strip, window_of<3, 2>(strip));
  if (square && kernel == 5 && stride == 1) return run(strip, window_of<5, 1>(strip));
  if (square && kernel == 5 && stride == 2) return run(strip, window_of<5, 2>(strip));
  run(strip, {sum_any<false>, sum_any<true>});
}

}  // namespace lathe::cpu::LATHE_ISA
