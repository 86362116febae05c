// SPDX-License-Identifier: Apache-2.0
// Regions of images, averaged (or their largest elements) over a grid of bins. Coordinates are worked out in f32 (f64
// for tensors of that type) as the plain evaluation does, each operation rounded: the number of samples jumps with
// them.
#pragma once

#include "generic/rounded.cuh"

// Where bins of a region lie along one axis.
template <class A, class T>
struct Bins {
  T start, size;
  int64 samples;

  LATHE_DEVICE_MEMBER Bins(T from, T to, long bins) {
    const T scale = static_cast<T>(A::spatial_scale()), shift = A::half_pixel ? T{0.5} : T{0};
    start = product(from, scale) - shift;
    T extent = product(to, scale) - shift - start;
    if (!A::half_pixel && extent < 1) extent = 1;
    size = extent / static_cast<T>(bins);
    const T wanted = ceil(size);
    samples = A::sampling_ratio;
    if (samples == 0 && wanted >= 1) samples = static_cast<int64>(wanted < 65536 ? wanted : T{65536});
  }
  LATHE_DEVICE_MEMBER T at(long bin, long sample) const {
    return start + product(static_cast<T>(bin), size) +
           product(static_cast<T>(sample) + T{0.5}, size) / static_cast<T>(samples);
  }
};

// The two pixels around a position and their weights; none of those further than a pixel outside.
template <class T>
struct Taps {
  long pixel[2];
  T weight[2];

  LATHE_DEVICE_MEMBER Taps(T position, long extent) : pixel{0, 0}, weight{0, 0} {
    if (extent == 0 || !(position >= -1 && position <= static_cast<T>(extent))) return;
    if (position < 0) position = 0;
    pixel[0] = static_cast<long>(position);
    weight[1] = position - static_cast<T>(pixel[0]);
    if (pixel[0] >= extent - 1) {
      pixel[0] = extent - 1;
      weight[1] = 0;
    }
    pixel[1] = pixel[0] + (pixel[0] < extent - 1 ? 1 : 0);
    weight[0] = 1 - weight[1];
  }
  LATHE_DEVICE_MEMBER bool is_inside() const { return weight[0] + weight[1] > 0; }
};

// c: region, channel, bin. An image that is not there reads as 0.
template <class A, class X, class Regions, class Images, class T, int N>
LATHE_DEVICE T pool_bin(const X& x, const Regions& regions, const Images& images, const long (&c)[N], T) {
  const long at_image[1] = {c[0]};
  const long image = static_cast<long>(element(images, at_image));
  if (image < 0 || image >= x.dim(0)) return 0;
  T edges[4];
  LATHE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const long at[2] = {c[0], i};
    edges[i] = widen_to<T>(element(regions, at));
  }
  const Bins<A, T> rows(edges[1], edges[3], A::height), columns(edges[0], edges[2], A::width);
  constexpr bool kMax = A::mode == A::mode_type::max;
  T sum = 0, largest = 0;
  bool first = true;
  const auto add = [&](T value) {
    sum += value;
    if (first || value > largest) largest = value;
    first = false;
  };
  for (int64 sy = 0; sy < rows.samples; ++sy) {
    const Taps<T> y(rows.at(c[2], sy), x.dim(2));
    if (!y.is_inside()) {
      if (columns.samples > 0) add(0);
      continue;
    }
    for (int64 sx = 0; sx < columns.samples; ++sx) {
      const Taps<T> across(columns.at(c[3], sx), x.dim(3));
      LATHE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const T weight = y.weight[i / 2] * across.weight[i % 2];
        const long at[4] = {image, c[1], y.pixel[i / 2], across.pixel[i % 2]};
        add(weight == 0 ? T{0} : weight * widen_to<T>(element(x, at)));
      }
    }
  }
  if (kMax) return largest;
  const int64 count = rows.samples * columns.samples;
  return sum / static_cast<T>(count > 0 ? count : 1);
}

template <bool kDouble>
struct Precision {
  using Type = float;
};
template <>
struct Precision<true> {
  using Type = double;
};

// Neighbouring threads take neighbouring channels where those lie side by side, else neighbouring bins.
template <class A, bool kChannelsLast, class X, class Regions, class Images, class Out>
LATHE_DEVICE void roi_align(const X& x, const Regions& regions, const Images& images, const Out& out) {
  using T = typename Out::Type;
  using Wide = typename Precision<is_same<T, double>>::Type;
  for_each(volume_of(out), [&](long i) {
    long c[4];
    if constexpr (kChannelsLast) {
      c[1] = i % out.dim(1);
      i /= out.dim(1);
      c[3] = i % out.dim(3);
      i /= out.dim(3);
      c[2] = i % out.dim(2);
      c[0] = i / out.dim(2);
    } else {
      unflatten(out, i, c);
    }
    element(out, c) = narrow<T>(static_cast<double>(pool_bin<A>(x, regions, images, c, Wide{})));
  });
}
