// SPDX-License-Identifier: Apache-2.0
// The instructions of the fusion program in double, for tensors that float does not hold (see lib/math.cuh).
#pragma once

#include "lib/math.cuh"

namespace instruction {

LATHE_DEVICE double constant(double x) { return x; }
LATHE_DEVICE double add(double a, double b) { return a + b; }
LATHE_DEVICE double sub(double a, double b) { return a - b; }
LATHE_DEVICE double mul(double a, double b) { return a * b; }
LATHE_DEVICE double div(double a, double b) { return a / b; }
// fmaxf and fminf drop NaN. With a NaN in b the comparison fails and b is the result.
LATHE_DEVICE double max(double a, double b) { return a >= b || a != a ? a : b; }
LATHE_DEVICE double min(double a, double b) { return a <= b || a != a ? a : b; }
// The hardware library's errs by up to 2 ulp, which shows where a whole number is expected and truncated to.
LATHE_DEVICE double pow(double a, double b) {
  if (b == 0.5 && a >= 0) return ::sqrt(a);
  const double power = ::pow(a, b);
  return a == ::floor(a) && b == ::floor(b) && ::fabs(power) < 9007199254740992.0 && b >= 0 ? ::rint(power) : power;
}
LATHE_DEVICE double fma(double a, double b, double c) { return ::fma(a, b, c); }
LATHE_DEVICE double affine(double a, double x, double y) { return ::fma(a, x, y); }
LATHE_DEVICE double less(double a, double b) { return a < b ? 1.0 : 0.0; }
LATHE_DEVICE double equal(double a, double b) { return a == b ? 1.0 : 0.0; }
LATHE_DEVICE double select(double a, double b, double c) { return a != 0 ? b : c; }

LATHE_DEVICE double neg(double a) { return -a; }
LATHE_DEVICE double abs(double a) { return ::fabs(a); }
LATHE_DEVICE double sqrt(double a) { return ::sqrt(a); }
LATHE_DEVICE double recip(double a) { return 1.0 / a; }
LATHE_DEVICE double exp(double a) { return ::exp(a); }
LATHE_DEVICE double log(double a) { return ::log(a); }
LATHE_DEVICE double erf(double a) { return ::erf(a); }
LATHE_DEVICE double sin(double a) { return ::sin(a); }
LATHE_DEVICE double cos(double a) { return ::cos(a); }
LATHE_DEVICE double floor(double a) { return ::floor(a); }
LATHE_DEVICE double ceil(double a) { return ::ceil(a); }
LATHE_DEVICE double round(double a) { return ::rint(a); }
LATHE_DEVICE double sign(double a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a; }
LATHE_DEVICE double tanh(double a) { return ::tanh(a); }
// By the exponential of -|a|, which cannot overflow: exact to some ulp on both sides.
LATHE_DEVICE double sigmoid(double a) {
  const double e = ::exp(-::fabs(a));
  return (a < 0 ? e : 1.0) / (1.0 + e);
}

LATHE_DEVICE double relu(double a) { return max(a, 0.0); }
LATHE_DEVICE double clip(double a, double x, double y) { return min(max(a, x), y); }
LATHE_DEVICE double leaky_relu(double a, double x) { return a < 0 ? a * x : a; }
LATHE_DEVICE double elu(double a, double x) { return a < 0 ? x * ::expm1(a) : a; }
LATHE_DEVICE double selu(double a, double x, double y) { return a > 0 ? y * a : y * x * ::expm1(a); }
LATHE_DEVICE double celu(double a, double x) { return max(a, 0.0) + min(0.0, x * ::expm1(a / x)); }
LATHE_DEVICE double softplus(double a) { return max(a, 0.0) + ::log1p(::exp(-::fabs(a))); }
LATHE_DEVICE double softsign(double a) { return a / (1.0 + ::fabs(a)); }
LATHE_DEVICE double hard_sigmoid(double a, double x, double y) { return min(max(::fma(a, x, y), 0.0), 1.0); }
// (a + 3) / 6 keeps its relative precision near -3, where a / 6 + 0.5 loses it.
LATHE_DEVICE double hard_swish(double a) { return a * min(max((a + 3.0) * (1.0 / 6.0), 0.0), 1.0); }
LATHE_DEVICE double silu(double a) { return a * sigmoid(a); }
LATHE_DEVICE double gelu_erf(double a) { return 0.5 * a * ::erfc(a * -0.70710678118654752440); }
LATHE_DEVICE double gelu_tanh(double a) { return a * sigmoid(1.59576912160573071176 * ::fma(0.044715 * a * a, a, a)); }
LATHE_DEVICE double thresholded_relu(double a, double x) { return a > x ? a : 0.0; }
LATHE_DEVICE double mish(double a) { return a * ::tanh(softplus(a)); }
LATHE_DEVICE double prelu(double a, double b) { return a < 0 ? a * b : a; }

}  // namespace instruction
