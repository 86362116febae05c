// SPDX-License-Identifier: Apache-2.0
// Resizing along any axes: an output element is the sum of the input elements around its position, weighted by the
// product of each axis's weight.
#pragma once

#include "generic/element.cuh"

// One axis. A position that lies on an element belongs to the gap before it.
template <class A>
struct ResizeAxis {
  using Mode = typename A::mode_type;
  using Coordinates = typename A::coordinates_type;
  using Nearest = typename A::nearest_type;
  long input, output;
  double scale, roi_begin, roi_end;
  bool still;  // nothing moves along it

  double ratio;      // of the position in its gap, in (0, 1]
  long start, left;  // the first tap's element, and how many taps stand before the position
  bool outside;
  double total;  // of the weights, where they are made to sum to 1; else 1

  LATHE_DEVICE_MEMBER double source(double y) const {
    const double in = static_cast<double>(input), out = scale * in;
    if constexpr (A::coordinates == Coordinates::align_corners) return out == 1 ? 0 : y * (in - 1) / (out - 1);
    if constexpr (A::coordinates == Coordinates::asymmetric) return y / scale;
    if constexpr (A::coordinates == Coordinates::tf_half_pixel_for_nn) return (y + 0.5) / scale;
    if constexpr (A::coordinates == Coordinates::pytorch_half_pixel) return out == 1 ? -0.5 : (y + 0.5) / scale - 0.5;
    if constexpr (A::coordinates == Coordinates::half_pixel_symmetric)
      return in / 2 * (1 - static_cast<double>(output) / out) + (y + 0.5) / scale - 0.5;
    if constexpr (A::coordinates == Coordinates::tf_crop_and_resize) {
      const double extent = (roi_end - roi_begin) * (in - 1);
      return roi_begin * (in - 1) + (out == 1 ? extent / 2 : y * extent / (out - 1));
    }
    return (y + 0.5) / scale - 0.5;
  }

  LATHE_DEVICE_MEMBER double shrink() const {
    return A::antialias && A::mode != Mode::nearest && scale < 1 ? scale : 1.0;
  }
  LATHE_DEVICE_MEMBER long taps() const { return 2 * left + 2; }
  LATHE_DEVICE_MEMBER long position(long tap) const { return clamp_to(start + tap, 0, input - 1); }

  LATHE_DEVICE_MEMBER static double cubic(double x) {
    const double a = A::cubic_a();
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
  }
  LATHE_DEVICE_MEMBER double raw_weight(long tap) const {
    if (A::exclude_outside && (start + tap < 0 || start + tap >= input)) return 0;
    if constexpr (A::mode == Mode::nearest) {
      bool first = ratio != 1;
      if constexpr (A::nearest == Nearest::round_prefer_floor) first = first && ratio <= 0.5;
      if constexpr (A::nearest == Nearest::round_prefer_ceil) first = first && ratio < 0.5;
      if constexpr (A::nearest == Nearest::ceil) first = false;
      return (tap == 0) == first ? 1 : 0;
    } else {
      const double distance = shrink() * (static_cast<double>(tap - left) - ratio);
      if constexpr (A::mode == Mode::cubic) return cubic(distance);
      return fabs(distance) < 1 ? 1 - fabs(distance) : 0;
    }
  }
  LATHE_DEVICE_MEMBER double weight(long tap) const { return raw_weight(tap) / total; }

  LATHE_DEVICE_MEMBER void set_output(long y) {
    outside = false;
    if (still) {
      start = y;
      return;
    }
    const double reach = (A::mode == Mode::cubic ? 2 : 1) / shrink();
    left = -(static_cast<long>(floor(-reach)) + 1);
    double x = source(static_cast<double>(y));
    x = x != x ? 0 : x < -0x1p50 ? -0x1p50 : x > 0x1p50 ? 0x1p50 : x;
    const double whole = floor(x);
    ratio = x == whole ? 1 : x - whole;
    start = static_cast<long>(whole) - (x == whole ? 1 : 0) - left;
    outside = A::coordinates == Coordinates::tf_crop_and_resize && (x < 0 || x > static_cast<double>(input - 1));
    total = 1;
    if (A::exclude_outside || (A::antialias && A::mode != Mode::nearest)) {
      total = 0;
      for (long tap = 0; tap < taps(); ++tap) total += raw_weight(tap);
      if (total == 0) total = 1;
    }
  }
};

// Rounds to nearest even and saturates.
template <class T>
LATHE_DEVICE T narrow_resized(double value) {
  if constexpr (is_float<T> || is_same<T, bool>)
    return narrow<T>(value);
  else
    return saturate<T>(rint(value));
}

// The sum over the axes up to kAxis at the others' positions `at`: axis by axis, so that it rounds as axes resized one
// after the other do. What does not count is not read: an infinity there must not make a NaN.
template <int kAxis, class A, class X, int N>
LATHE_DEVICE double sample(const X& x, const ResizeAxis<A> (&axes)[N], long (&at)[N]) {
  if constexpr (kAxis < 0) {
    return widen_to<double>(element(x, at));
  } else {
    const ResizeAxis<A>& axis = axes[kAxis];
    if (axis.still) {
      at[kAxis] = axis.start;
      return sample<kAxis - 1>(x, axes, at);
    }
    double sum = 0;
    for (long tap = 0; tap < axis.taps(); ++tap) {
      const double weight = axis.weight(tap);
      if (weight == 0) continue;
      at[kAxis] = axis.position(tap);
      sum += weight * sample<kAxis - 1>(x, axes, at);
    }
    return sum;
  }
}

// scales(d), begins(d), ends(d): of dimension d.
template <class A, class Scales, class Begins, class Ends, class X, class Out>
LATHE_DEVICE void resize(const X& x, const Out& out, const Scales& scales, const Begins& begins, const Ends& ends) {
  constexpr int kRank = X::kRank;
  for_each_element(out, [&](const auto& c) {
    ResizeAxis<A> axes[kCoordinates<X>];
    bool outside = false;
    LATHE_UNROLL
    for (int d = 0; d < kRank; ++d) {
      ResizeAxis<A>& axis = axes[d];
      axis.input = x.dim(d);
      axis.output = out.dim(d);
      axis.scale = scales(d);
      axis.roi_begin = begins(d);
      axis.roi_end = ends(d);
      axis.still = axis.scale == 1 && axis.input == axis.output && axis.roi_begin == 0 && axis.roi_end == 1;
      axis.set_output(c[d]);
      outside |= axis.outside;
    }
    long at[kCoordinates<X>] = {};
    const double value = outside ? A::extrapolation() : sample<kRank - 1>(x, axes, at);
    element(out, c) = narrow_resized<typename Out::Type>(value);
  });
}
