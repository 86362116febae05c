// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution, channels-last: every channel has a filter of its own. A thread has a vector of channels and a
// strip of output pixels along W; each input pixel of a row is read once and goes to all outputs that it reaches.
#pragma once

#include "conv/window.cuh"

namespace depthwise {

LATHE_DEVICE int min_of(long a, int b) { return a < b ? static_cast<int>(a) : b; }

// kWidth channels at `from`, as float; the first `count` are read, the others are 0.
template <int kWidth, class Tensor>
LATHE_DEVICE void load_channels(const typename Tensor::Type* from, int count, float (&v)[kWidth]) {
  constexpr int kPart = Tensor::kVector < kWidth ? Tensor::kVector : kWidth;
  if (count == kWidth) {
    LATHE_UNROLL
    for (int i = 0; i < kWidth; i += kPart) {
      const auto part = load_vector<kPart>(from + i);
      LATHE_UNROLL
      for (int j = 0; j < kPart; ++j) v[i + j] = to_float(part.at[j]);
    }
    return;
  }
  LATHE_UNROLL
  for (int i = 0; i < kWidth; ++i) v[i] = i < count ? to_float(from[i]) : 0.0f;
}

// The tap along W by which input column `column` of a strip reaches output `t`; -1 = none.
template <class Window>
LATHE_DEVICE constexpr int tap_of(int column, int t) {
  const int distance = column - t * Window::stride(2);
  if (distance < 0 || distance % Window::dilation(2) != 0) return -1;
  const int tap = distance / Window::dilation(2);
  return tap < Window::kernel(2) ? tap : -1;
}

// One row of the filter over one row of the input: taps along W are unrolled.
template <class Window, int kStrip, int kWidth, class X, class Filter>
LATHE_DEVICE void add_row(const X& x, const typename X::Type* row, const typename Filter::Type* filter,
                          long filter_stride, int first_column, int count, float (&sums)[kStrip][kWidth]) {
  constexpr int kColumns = (kStrip - 1) * Window::stride(2) + (Window::kernel(2) - 1) * Window::dilation(2) + 1;
  float taps[Window::kernel(2)][kWidth];
  LATHE_UNROLL
  for (int tap = 0; tap < Window::kernel(2); ++tap)
    load_channels<kWidth, Filter>(filter + tap * filter_stride, count, taps[tap]);
  LATHE_UNROLL
  for (int column = 0; column < kColumns; ++column) {
    bool used = false;
    LATHE_UNROLL
    for (int t = 0; t < kStrip; ++t) used = used || tap_of<Window>(column, t) >= 0;
    if (!used) continue;
    const int at = first_column + column;
    const bool inside = static_cast<unsigned>(at) < static_cast<unsigned>(conv::axis_extent(x, 2));
    float pixel[kWidth];
    load_channels<kWidth, X>(row + column * conv::axis_stride(x, 2), inside ? count : 0, pixel);
    LATHE_UNROLL
    for (int t = 0; t < kStrip; ++t) {
      const int tap = tap_of<Window>(column, t);
      if (tap < 0) continue;
      LATHE_UNROLL
      for (int i = 0; i < kWidth; ++i) sums[t][i] = fmaf(pixel[i], taps[tap][i], sums[t][i]);
    }
  }
}

// The same for long rows: a loop over the taps.
template <class Window, int kStrip, int kWidth, class X, class Filter>
LATHE_DEVICE void add_long_row(const X& x, const typename X::Type* row, const typename Filter::Type* filter,
                               long filter_stride, int first_column, int count, float (&sums)[kStrip][kWidth]) {
  LATHE_NO_UNROLL
  for (int tap = 0; tap < Window::kernel(2); ++tap) {
    float weights[kWidth];
    load_channels<kWidth, Filter>(filter + tap * filter_stride, count, weights);
    LATHE_UNROLL
    for (int t = 0; t < kStrip; ++t) {
      const int column = tap * Window::dilation(2) + t * Window::stride(2), at = first_column + column;
      const bool inside = static_cast<unsigned>(at) < static_cast<unsigned>(conv::axis_extent(x, 2));
      float pixel[kWidth];
      load_channels<kWidth, X>(row + column * conv::axis_stride(x, 2), inside ? count : 0, pixel);
      LATHE_UNROLL
      for (int i = 0; i < kWidth; ++i) sums[t][i] = fmaf(pixel[i], weights[i], sums[t][i]);
    }
  }
}

// Where a thread's strip lies in the output.
struct Strip {
  long channel;
  conv::Corner corner;  // of the first pixel's window
  long image, d, h, w;
  bool exists;
};

template <class Window, int kStrip, int kWidth>
LATHE_DEVICE Strip strip_of(const conv::Pixels& pixels, long images, long channels) {
  const auto vectors = static_cast<unsigned>((channels + kWidth - 1) / kWidth);
  const auto strips = static_cast<unsigned>((pixels.extent[2] + kStrip - 1) / kStrip);
  auto rest =
      static_cast<unsigned>(block_x()) * static_cast<unsigned>(block_threads()) + static_cast<unsigned>(thread_x());
  Strip s;
  s.channel = static_cast<long>(rest % vectors) * kWidth, rest /= vectors;
  s.w = static_cast<long>(rest % strips) * kStrip, rest /= strips;
  s.h = rest % static_cast<unsigned>(pixels.extent[1]), rest /= static_cast<unsigned>(pixels.extent[1]);
  s.d = rest % static_cast<unsigned>(pixels.extent[0]), rest /= static_cast<unsigned>(pixels.extent[0]);
  s.image = rest;
  s.exists = s.image < images;
  s.corner.at[0] = static_cast<int>(s.d) * Window::stride(0) - Window::pad(0);
  s.corner.at[1] = static_cast<int>(s.h) * Window::stride(1) - Window::pad(1);
  s.corner.at[2] = static_cast<int>(s.w) * Window::stride(2) - Window::pad(2);
  return s;
}

template <class Out, int kStrip, int kWidth, class Fusion>
LATHE_DEVICE void store_strip(const Out& out, const Fusion& fusion, const Strip& s, int count, long width,
                              float (&sums)[kStrip][kWidth]) {
  LATHE_UNROLL
  for (int t = 0; t < kStrip; ++t) {
    if (s.w + t >= width) break;
    const long all[5] = {s.image, s.channel, s.d, s.h, s.w + t};
    long c[Out::kRank];
    LATHE_UNROLL
    for (int i = 0; i < Out::kRank; ++i) c[i] = i < 2 ? all[i] : all[i + 5 - Out::kRank];
    fusion.template apply<1, kWidth>(sums[t], c, count);
    store_result<Fusion, 1>(out, c, sums[t], count);
  }
}

// Filter: taps by channels. kLong: a loop over the taps along W; kWhole: the channels are a multiple of kWidth.
template <class Window, int kStrip, int kWidth, bool kLong, bool kWhole, class X, class Filter, class Out, class Fusion>
LATHE_DEVICE void run(const X& x, const Filter& filter, const Out& out, const Fusion& fusion,
                      const conv::Pixels& pixels) {
  dependency_wait();
  const Strip s = strip_of<Window, kStrip, kWidth>(pixels, x.dim(0), x.dim(1));
  if (!s.exists) return;
  const int count = kWhole ? kWidth : min_of(x.dim(1) - s.channel, kWidth);
  float sums[kStrip][kWidth] = {};
  const typename X::Type* image = x.data + s.image * x.stride(0) + s.channel;
  const long filter_stride = filter.stride(0);
  for (int d = 0; d < Window::kernel(0); ++d) {
    const int at_d = s.corner.at[0] + d * Window::dilation(0);
    if (static_cast<unsigned>(at_d) >= static_cast<unsigned>(conv::axis_extent(x, 0))) continue;
    for (int h = 0; h < Window::kernel(1); ++h) {
      const int at_h = s.corner.at[1] + h * Window::dilation(1);
      if (static_cast<unsigned>(at_h) >= static_cast<unsigned>(conv::axis_extent(x, 1))) continue;
      const auto* row = image + at_d * conv::axis_stride(x, 0) + at_h * conv::axis_stride(x, 1) +
                        s.corner.at[2] * conv::axis_stride(x, 2);
      const auto* taps =
          filter.data + static_cast<long>(d * Window::kernel(1) + h) * Window::kernel(2) * filter_stride + s.channel;
      if constexpr (kLong)
        add_long_row<Window, kStrip, kWidth, X, Filter>(x, row, taps, filter_stride, s.corner.at[2], count, sums);
      else
        add_row<Window, kStrip, kWidth, X, Filter>(x, row, taps, filter_stride, s.corner.at[2], count, sums);
    }
  }
  store_strip(out, fusion, s, count, pixels.extent[2], sums);
}

}  // namespace depthwise
