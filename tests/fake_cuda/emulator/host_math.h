// SPDX-License-Identifier: Apache-2.0
// The mathematical functions that device code may call, from the host's libm. The whole <math.h> would take longer to
// read than most kernels.
#pragma once

#define LATHE_UNARY(name)       \
  double name(double) noexcept; \
  float name##f(float) noexcept;
#define LATHE_BINARY(name)              \
  double name(double, double) noexcept; \
  float name##f(float, float) noexcept;
extern "C" {
LATHE_UNARY(acos)
LATHE_UNARY(acosh)
LATHE_UNARY(asin)
LATHE_UNARY(asinh)
LATHE_UNARY(atan)
LATHE_UNARY(atanh)
LATHE_UNARY(cbrt)
LATHE_UNARY(ceil)
LATHE_UNARY(cos)
LATHE_UNARY(cosh)
LATHE_UNARY(erf)
LATHE_UNARY(erfc)
LATHE_UNARY(exp)
LATHE_UNARY(exp2)
LATHE_UNARY(expm1)
LATHE_UNARY(fabs)
LATHE_UNARY(floor)
LATHE_UNARY(log)
LATHE_UNARY(log10)
LATHE_UNARY(log1p)
LATHE_UNARY(log2)
LATHE_UNARY(rint)
LATHE_UNARY(round)
LATHE_UNARY(sin)
LATHE_UNARY(sinh)
LATHE_UNARY(sqrt)
LATHE_UNARY(tan)
LATHE_UNARY(tanh)
LATHE_UNARY(trunc)
LATHE_BINARY(atan2)
LATHE_BINARY(copysign)
LATHE_BINARY(fmax)
LATHE_BINARY(fmin)
LATHE_BINARY(fmod)
LATHE_BINARY(pow)
double ldexp(double, int) noexcept;
int ilogb(double) noexcept;
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
void* memcpy(void*, const void*, unsigned long) noexcept;
void* memset(void*, int, unsigned long) noexcept;
}  // extern "C"
#undef LATHE_UNARY
#undef LATHE_BINARY

inline bool isinf(double value) { return __builtin_isinf(value); }
inline bool isnan(double value) { return __builtin_isnan(value); }
