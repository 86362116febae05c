// SPDX-License-Identifier: Apache-2.0
// Pooling, convolution and deconvolution: a thread per output element. Windows slide over the last kSpatial dimensions.
// The lists window, stride, dilation and pad have an entry for each of them.
#pragma once

#include "generic/element.cuh"

template <class Window, class Stride, class Dilation, class Pad>
struct Windows {
  Window window;
  Stride stride;
  Dilation dilation;
  Pad pad;

  LATHE_DEVICE_MEMBER long taps(int spatial) const {
    long count = 1;
    for (int i = 0; i < spatial; ++i) count *= window(i);
    return count;
  }
  // Where tap `tap` of the output at c reads, in the last dimensions of `at`; false = beyond the input.
  template <int kSpatial, class X, int N, int M>
  LATHE_DEVICE_MEMBER bool locate(const X& x, long tap, const long (&c)[N], long (&at)[M]) const {
    bool inside = true;
    LATHE_UNROLL
    for (int i = kSpatial - 1; i >= 0; --i) {
      const int d = X::kRank - kSpatial + i;
      at[d] = c[d] * stride(i) + tap % window(i) * dilation(i) - pad(i);
      tap /= window(i);
      inside &= at[d] >= 0 && at[d] < x.dim(d);
    }
    return inside;
  }
  // The input at which tap `tap` writes to the output at c, if there is one.
  template <int kSpatial, class X, int N, int M>
  LATHE_DEVICE_MEMBER bool locate_back(const X& x, long tap, const long (&c)[N], long (&at)[M]) const {
    bool inside = true;
    LATHE_UNROLL
    for (int i = kSpatial - 1; i >= 0; --i) {
      const int d = X::kRank - kSpatial + i;
      const long position = c[d] + pad(i) - tap % window(i) * dilation(i);
      tap /= window(i);
      inside &= position >= 0 && position % stride(i) == 0;
      at[d] = position / stride(i);
      inside &= at[d] < x.dim(d);
    }
    return inside;
  }
};
template <class Window, class Stride, class Dilation, class Pad>
LATHE_DEVICE Windows<Window, Stride, Dilation, Pad> windows(const Window& window, const Stride& stride,
                                                            const Dilation& dilation, const Pad& pad) {
  return {window, stride, dilation, pad};
}

// `write_index(c, flat index)` takes where the largest element stands.
template <int kSpatial, bool kColumnMajor, class Fusion, class Win, class X, class Out, class WriteIndex>
LATHE_DEVICE void max_pool(const Fusion& fusion, const Win& win, const X& x, const Out& out,
                           const WriteIndex& write_index) {
  using W = Wide<typename X::Type>;
  for_each_element(out, [&](const auto& c) {
    long at[kCoordinates<X>], where = -1;
    LATHE_UNROLL
    for (int i = 0; i < X::kRank; ++i) at[i] = c[i];
    W best{};
    for (long tap = 0, taps = win.taps(kSpatial); tap < taps; ++tap) {
      if (!win.template locate<kSpatial>(x, tap, c, at)) continue;
      const W value = widen(element(x, at));
      const bool is_nan = value != value, best_is_nan = best != best;
      if (where >= 0 && !(value > best) && (!is_nan || best_is_nan)) continue;
      best = value;
      where = 0;
      for (int i = 0; i < kSpatial; ++i) {
        const int d = X::kRank - 1 - (kColumnMajor ? i : kSpatial - 1 - i);
        where = where * x.dim(d) + at[d];
      }
    }
    if (where < 0) {
      if constexpr (is_same<W, double>)
        best = -infinite();
      else
        best = static_cast<W>(is_same<W, int64> ? Limits<int64>::kMin : 0);
      where = 0;
    }
    put(fusion, out, c, best);
    long plane = 0;
    for (int i = 0; i < X::kRank - kSpatial; ++i) plane = plane * x.dim(i) + c[i];
    for (int i = X::kRank - kSpatial; i < X::kRank; ++i) plane *= x.dim(i);
    write_index(c, plane + where);
  });
}

// Sums over windows: the mean (taps on padding count if kCountPadding, never those beyond it), or the p-norm.
template <int kSpatial, bool kCountPadding, int kPower, class Fusion, class Win, class PadEnd, class X, class Out>
LATHE_DEVICE void sum_pool(const Fusion& fusion, const Win& win, const PadEnd& pad_end, const X& x, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long at[kCoordinates<X>];
    LATHE_UNROLL
    for (int i = 0; i < X::kRank; ++i) at[i] = c[i];
    double sum = 0, divisor = 0;
    for (long tap = 0, taps = win.taps(kSpatial); tap < taps; ++tap) {
      const bool inside = win.template locate<kSpatial>(x, tap, c, at);
      bool counts = inside;
      if (kCountPadding) {
        counts = true;
        LATHE_UNROLL
        for (int i = 0; i < kSpatial; ++i) {
          const int d = X::kRank - kSpatial + i;
          counts &= at[d] < x.dim(d) + pad_end(i);
        }
      }
      divisor += counts ? 1 : 0;
      if (!inside) continue;
      const double value = widen(element(x, at));
      sum += kPower > 0 ? pow(fabs(value), static_cast<double>(kPower)) : value;
    }
    put(fusion, out, c, kPower > 0 ? pow(sum, 1 / static_cast<double>(kPower)) : sum / divisor);
  });
}

struct NoChannelBias {
  template <class W>
  LATHE_DEVICE_MEMBER W get(long) const {
    return 0;
  }
};
template <class Tensor>
struct ChannelBias {
  Tensor tensor;
  template <class W>
  LATHE_DEVICE_MEMBER W get(long channel) const {
    return widen_to<W>(tensor.data[channel * tensor.stride(0)]);
  }
};
template <class Tensor>
LATHE_DEVICE ChannelBias<Tensor> channel_bias(const Tensor& tensor) {
  return {tensor};
}

// W is double, or an integer type in which sums wrap. kBack: deconvolution, whose weights are [C, O / groups, ...].
template <bool kBack, int kGroups, class W, class Fusion, class Win, class X, class Weights, class Bias, class Out>
LATHE_DEVICE void convolution(const Fusion& fusion, const Win& win, const X& x, const Weights& w, const Bias& bias,
                              const Out& out) {
  constexpr int kSpatial = X::kRank - 2;
  const long channels = x.dim(1) / kGroups, outputs = out.dim(1) / kGroups;
  for_each_element(out, [&](const auto& c) {
    const long group = c[1] / outputs;
    long at[X::kRank], weight[X::kRank];
    at[0] = c[0];
    W sum = bias.template get<W>(c[1]);
    for (long k = 0; k < channels; ++k) {
      at[1] = group * channels + k;
      weight[0] = kBack ? at[1] : c[1];
      weight[1] = kBack ? c[1] % outputs : k;
      LATHE_NO_UNROLL  // NVRTC 13 crashes where it finds for some strides that it may unroll this
          for (long tap = 0, taps = win.taps(kSpatial); tap < taps; ++tap) {
        const bool inside =
            kBack ? win.template locate_back<kSpatial>(x, tap, c, at) : win.template locate<kSpatial>(x, tap, c, at);
        if (!inside) continue;
        long rest = tap;
        LATHE_UNROLL
        for (int i = kSpatial - 1; i >= 0; --i) {
          weight[2 + i] = rest % win.window(i);
          rest /= win.window(i);
        }
        sum += widen_to<W>(element(w, weight)) * widen_to<W>(element(x, at));
      }
    }
    put(fusion, out, c, sum);
  });
}
