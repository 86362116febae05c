// SPDX-License-Identifier: Apache-2.0
// Pointwise ops on all element types. Operands have the output's dims, stride 0 where they broadcast.
#pragma once

#include "generic/element.cuh"
#include "lib/math_f64.cuh"

// A chain of these picks one expression while compiling.
#define LATHE_WHEN(name, ...) else if constexpr (A::op == A::op_type::name) return __VA_ARGS__;

struct Identity {
  template <class T>
  LATHE_DEVICE_MEMBER static T apply(T x) {
    return x;
  }
};

// The formulas of base/scalars.def. T is int64 or, where kSigned does not hold, uint64.
template <class A, bool kSigned>
struct Unary {
  LATHE_DEVICE_MEMBER static double apply(double a) {
    using real = double;
    [[maybe_unused]] const double x = A::detect_negative, y = A::detect_positive;
    if constexpr (false) return 0;
#define LATHE_UNARY(name, traits, formula, integers) LATHE_WHEN(name, formula)
#include "base/scalars.def"
    return 0;
  }
  LATHE_DEVICE_MEMBER static int64 apply(int64 a) {
    if constexpr (kSigned)
      return integers(a);
    else
      return static_cast<int64>(integers(static_cast<uint64>(a)));
  }
  template <class T>
  LATHE_DEVICE_MEMBER static T integers(T a) {
    using word = uint64;
    if constexpr (false) return 0;
#define LATHE_UNARY(name, traits, formula, integers) LATHE_WHEN(name, integers)
#include "base/scalars.def"
    return a;
  }
};

// A bound of clip as an integer: fractions round inwards, what is out of range stops at the ends.
template <class T>
LATHE_DEVICE T integer_bound(double bound, bool lower) {
  const double whole = lower ? ceil(bound) : floor(bound);
  if (whole >= (is_same<T, int64> ? 0x1p63 : 0x1p64)) return Limits<T>::kMax;
  if (!(whole > static_cast<double>(Limits<T>::kMin))) return Limits<T>::kMin;
  return static_cast<T>(whole);
}

template <class A>
struct Activation {
  LATHE_DEVICE_MEMBER static double apply(double a) {
    using real = double;
    [[maybe_unused]] const double x = A::alpha(), y = A::beta();
    if constexpr (false) return 0;
#define LATHE_ACTIVATION(name, parameters, formula) LATHE_WHEN(name, formula)
#include "base/scalars.def"
    return a;
  }
  template <class T>  // int64, or uint64 for u64
  LATHE_DEVICE_MEMBER static T apply(T x) {
    constexpr bool relu = A::op == A::op_type::relu;
    const T low = integer_bound<T>(relu ? 0 : A::alpha(), true);
    const T high = relu ? Limits<T>::kMax : integer_bound<T>(A::beta(), false);
    const T above = x < low ? low : x;
    return above > high ? high : above;
  }
};

template <class A, int kBits>
struct Elementwise {
  LATHE_DEVICE_MEMBER static double apply(double a, double b) {
    using real [[maybe_unused]] = double;
    if constexpr (false) return 0;
#define LATHE_BINARY(name, traits, formula, integers) LATHE_WHEN(name, formula)
#include "base/scalars.def"
    return 0;
  }
  template <class T>
  LATHE_DEVICE_MEMBER static T apply(T a, T b) {
    using word = uint64;
    [[maybe_unused]] constexpr uint64 bits = kBits;
    if constexpr (false) return 0;
#define LATHE_BINARY(name, traits, formula, integers) LATHE_WHEN(name, integers)
#include "base/scalars.def"
    return 0;
  }
};
#undef LATHE_WHEN

struct Prelu {
  template <class T>
  LATHE_DEVICE_MEMBER static T apply(T a, T b) {
    if constexpr (is_same<T, double>)
      return instruction::prelu(a, b);
    else if constexpr (is_same<T, uint64>)
      return a;
    else
      return a < 0 ? static_cast<T>(static_cast<uint64>(a) * static_cast<uint64>(b)) : a;
  }
};

template <class Op, class W, class Fusion, class X, class Out>
LATHE_DEVICE void map_one(const Fusion& fusion, const X& x, const Out& out) {
  for_each_element(out, [&](const auto& c) { put(fusion, out, c, Op::apply(widen_to<W>(element(x, c)))); });
}

template <class Op, class W, class Fusion, class X, class Y, class Out>
LATHE_DEVICE void map_two(const Fusion& fusion, const X& x, const Y& y, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    put(fusion, out, c, Op::apply(widen_to<W>(element(x, c)), widen_to<W>(element(y, c))));
  });
}

template <class C, class X, class Y, class Out>
LATHE_DEVICE void select_elements(const C& condition, const X& yes, const Y& no, const Out& out) {
  for_each_element(out,
                   [&](const auto& c) { element(out, c) = element(condition, c) ? element(yes, c) : element(no, c); });
}
