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

// T is int64 for every integer type; kSigned tells what the type was.
template <class A, bool kSigned>
struct Unary {
  LATHE_DEVICE_MEMBER static double apply(double x) {
    if constexpr (false) return 0;
    LATHE_WHEN(exp, exp(x))
    LATHE_WHEN(log, log(x))
    LATHE_WHEN(sqrt, sqrt(x))
    LATHE_WHEN(recip, 1 / x)
    LATHE_WHEN(abs, fabs(x))
    LATHE_WHEN(neg, -x)
    LATHE_WHEN(sin, sin(x))
    LATHE_WHEN(cos, cos(x))
    LATHE_WHEN(tan, tan(x))
    LATHE_WHEN(sinh, sinh(x))
    LATHE_WHEN(cosh, cosh(x))
    LATHE_WHEN(asin, asin(x))
    LATHE_WHEN(acos, acos(x))
    LATHE_WHEN(atan, atan(x))
    LATHE_WHEN(asinh, asinh(x))
    LATHE_WHEN(acosh, acosh(x))
    LATHE_WHEN(atanh, atanh(x))
    LATHE_WHEN(ceil, ceil(x))
    LATHE_WHEN(floor, floor(x))
    LATHE_WHEN(erf, erf(x))
    LATHE_WHEN(sign, x != x ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0)
    LATHE_WHEN(round, rint(x))
    LATHE_WHEN(is_inf, isinf(x) && (x > 0 ? A::detect_positive : A::detect_negative) ? 1.0 : 0.0)
    LATHE_WHEN(is_nan, x != x ? 1.0 : 0.0)
    return 0;
  }
  LATHE_DEVICE_MEMBER static int64 apply(int64 x) {
    if constexpr (false) return 0;
    LATHE_WHEN(abs, kSigned && x < 0 ? static_cast<int64>(-static_cast<uint64>(x)) : x)
    LATHE_WHEN(neg, static_cast<int64>(-static_cast<uint64>(x)))
    LATHE_WHEN(sign, kSigned ? (x > 0) - (x < 0) : x != 0)
    LATHE_WHEN(logical_not, !x)
    LATHE_WHEN(bitwise_not, ~x)
    return x;
  }
};

LATHE_DEVICE double larger_of(double a, double b) { return a != a || a > b ? a : b; }
LATHE_DEVICE double smaller_of(double a, double b) { return a != a || a < b ? a : b; }
LATHE_DEVICE double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }
LATHE_DEVICE double softplus_of(double x) { return (x > 0 ? x : 0.0) + log1p(exp(-fabs(x))); }
LATHE_DEVICE double clamp_of(double x, double low, double high) {
  return x < low ? (low < high ? low : high) : x > high ? high : x;
}

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
  LATHE_DEVICE_MEMBER static double apply(double x) {
    const double alpha = A::alpha(), beta = A::beta();
    if constexpr (false) return 0;
    LATHE_WHEN(relu, x < 0 ? 0 : x)
    LATHE_WHEN(sigmoid, sigmoid_of(x))
    LATHE_WHEN(tanh, tanh(x))
    LATHE_WHEN(leaky_relu, x < 0 ? alpha * x : x)
    LATHE_WHEN(elu, x < 0 ? alpha * expm1(x) : x)
    LATHE_WHEN(selu, beta * (x > 0 ? x : alpha * expm1(x)))
    LATHE_WHEN(softsign, x / (1 + fabs(x)))
    LATHE_WHEN(softplus, alpha * softplus_of(beta * x))
    LATHE_WHEN(clip, clamp_of(x, alpha, beta))
    LATHE_WHEN(hard_sigmoid, clamp_of(alpha * x + beta, 0, 1))
    LATHE_WHEN(scaled_tanh, alpha * tanh(beta * x))
    LATHE_WHEN(thresholded_relu, x > alpha ? x : 0)
    LATHE_WHEN(gelu_erf, 0.5 * x * (1 + erf(x / 1.4142135623730951)))
    LATHE_WHEN(gelu_tanh, 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
    LATHE_WHEN(celu, x < 0 ? alpha * expm1(x / alpha) : x)
    LATHE_WHEN(hard_swish, x * clamp_of(x / 6 + 0.5, 0, 1))
    LATHE_WHEN(silu, x * sigmoid_of(x))
    LATHE_WHEN(mish, x * tanh(softplus_of(x)))
    LATHE_WHEN(shrink, x < -alpha ? x + beta : x > alpha ? x - beta : x != x ? x : 0)
    return x;
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

// T is int64 or uint64. Division by zero gives 0; the one quotient that overflows wraps.
template <class T>
LATHE_DEVICE T quotient_of(T a, T b) {
  if (b == 0) return 0;
  if (is_same<T, int64> && b == static_cast<T>(-1)) return static_cast<T>(-static_cast<uint64>(a));
  return a / b;
}
template <class T>
LATHE_DEVICE T rest_of(T a, T b) {
  if (b == 0 || (is_same<T, int64> && b == static_cast<T>(-1))) return 0;
  return a % b;
}
template <class T>
LATHE_DEVICE bool rounds_down(T rest, T divisor) {
  return rest != 0 && (rest < 0) != (divisor < 0);
}
template <class T>
LATHE_DEVICE T power_of(T base, T exponent) {
  if (is_same<T, int64> && exponent < 0)
    return base == 1 ? 1 : base == static_cast<T>(-1) ? static_cast<T>(exponent % 2 ? -1 : 1) : 0;
  uint64 result = 1, square = static_cast<uint64>(base);
  for (uint64 n = static_cast<uint64>(exponent); n; n >>= 1, square *= square)
    if (n & 1) result *= square;
  return static_cast<T>(result);
}
template <int kBits, class T>
LATHE_DEVICE T shift_of(T a, T count, bool left) {
  const uint64 by = static_cast<uint64>(count);  // a negative count is a huge one
  if (by >= kBits) return 0;
  return left ? static_cast<T>(static_cast<uint64>(a) << by) : static_cast<T>(a >> by);
}
LATHE_DEVICE double floored_rest(double a, double b) {
  const double rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? copysign(0.0, b) : rest;
}

template <class A, int kBits>
struct Elementwise {
  LATHE_DEVICE_MEMBER static double apply(double a, double b) {
    if constexpr (false) return 0;
    LATHE_WHEN(add, a + b)
    LATHE_WHEN(sub, a - b)
    LATHE_WHEN(mul, a * b)
    LATHE_WHEN(div, a / b)
    LATHE_WHEN(max, larger_of(a, b))
    LATHE_WHEN(min, smaller_of(a, b))
    LATHE_WHEN(pow, instruction::pow(a, b))
    LATHE_WHEN(floor_div, floor(a / b))
    LATHE_WHEN(mod, floored_rest(a, b))
    LATHE_WHEN(fmod, fmod(a, b))
    LATHE_WHEN(equal, a == b ? 1.0 : 0.0)
    LATHE_WHEN(greater, a > b ? 1.0 : 0.0)
    LATHE_WHEN(less, a < b ? 1.0 : 0.0)
    LATHE_WHEN(greater_equal, a >= b ? 1.0 : 0.0)
    LATHE_WHEN(less_equal, a <= b ? 1.0 : 0.0)
    return 0;
  }
  template <class T>
  LATHE_DEVICE_MEMBER static T apply(T a, T b) {
    const uint64 x = static_cast<uint64>(a), y = static_cast<uint64>(b);
    if constexpr (false) return 0;
    LATHE_WHEN(add, static_cast<T>(x + y))
    LATHE_WHEN(sub, static_cast<T>(x - y))
    LATHE_WHEN(mul, static_cast<T>(x * y))
    LATHE_WHEN(div, quotient_of(a, b))
    LATHE_WHEN(max, a < b ? b : a)
    LATHE_WHEN(min, b < a ? b : a)
    LATHE_WHEN(pow, power_of(a, b))
    LATHE_WHEN(floor_div, quotient_of(a, b) - (rounds_down(rest_of(a, b), b) ? 1 : 0))
    LATHE_WHEN(mod, rounds_down(rest_of(a, b), b) ? rest_of(a, b) + b : rest_of(a, b))
    LATHE_WHEN(fmod, rest_of(a, b))
    LATHE_WHEN(logical_and, a && b)
    LATHE_WHEN(logical_or, a || b)
    LATHE_WHEN(logical_xor, !a != !b)
    LATHE_WHEN(equal, a == b)
    LATHE_WHEN(greater, a > b)
    LATHE_WHEN(less, a < b)
    LATHE_WHEN(greater_equal, a >= b)
    LATHE_WHEN(less_equal, a <= b)
    LATHE_WHEN(bitwise_and, a & b)
    LATHE_WHEN(bitwise_or, a | b)
    LATHE_WHEN(bitwise_xor, a ^ b)
    LATHE_WHEN(shift_left, shift_of<kBits>(a, b, true))
    LATHE_WHEN(shift_right, shift_of<kBits>(a, b, false))
    return 0;
  }
};
#undef LATHE_WHEN

struct Prelu {
  template <class T>
  LATHE_DEVICE_MEMBER static T apply(T a, T b) {
    if constexpr (is_same<T, double>)
      return a < 0 ? a * b : a;
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
