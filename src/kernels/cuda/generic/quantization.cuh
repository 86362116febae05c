// SPDX-License-Identifier: Apache-2.0
// Quantisation and its inverse. Scale and zero point have the output's dims, stride 0 where they broadcast.
#pragma once

#include "generic/element.cuh"
#include "lib/math_f64.cuh"

struct NoZeroPoint {};

template <class Zero, int N>
LATHE_DEVICE double zero_point_at(const Zero& zero, const long (&c)[N]) {
  if constexpr (is_same<Zero, NoZeroPoint>)
    return 0;
  else
    return widen_to<double>(element(zero, c));
}

// The quotient is rounded to Quotient, then to an integer of type Level, half to even.
template <class Level, class Quotient>
struct Quantize {
  LATHE_DEVICE_MEMBER static double apply(double x, double scale, double zero_point) {
    const double level = rint(widen_to<double>(narrow<Quotient>(x / scale))) + zero_point;
    const double low = static_cast<double>(Limits<Level>::kMin), high = static_cast<double>(Limits<Level>::kMax);
    return level < low ? low : level > high ? high : level;
  }
};

struct Dequantize {
  LATHE_DEVICE_MEMBER static double apply(double x, double scale, double zero_point) {
    return (x - zero_point) * scale;
  }
};

template <class Op, class Fusion, class X, class Scale, class Zero, class Out>
LATHE_DEVICE void map_quantization(const Fusion& fusion, const X& x, const Scale& scale, const Zero& zero,
                                   const Out& out) {
  for_each_element(out, [&](const auto& c) {
    put(fusion, out, c,
        Op::apply(widen_to<double>(element(x, c)), widen_to<double>(element(scale, c)), zero_point_at(zero, c)));
  });
}
