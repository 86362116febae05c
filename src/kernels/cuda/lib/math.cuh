// SPDX-License-Identifier: Apache-2.0
// The instructions of the fusion program (base/scalars.def), one function each: operands first, then parameters. NaN
// goes where the plain evaluation lets it go. Errors are a few ulp.
#pragma once

#include "lib/types.cuh"

#ifndef LATHE_EMULATED
LATHE_DEVICE float infinity() { return __int_as_float(0x7f800000); }
LATHE_DEVICE float not_a_number() { return __int_as_float(0x7fffffff); }
// 2 ** x to 2 ulp; results below the smallest normal number are 0.
LATHE_DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 / x to 1 ulp, for normal x.
LATHE_DEVICE float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
LATHE_DEVICE float infinity() { return __builtin_inff(); }
LATHE_DEVICE float not_a_number() { return __builtin_nanf(""); }
LATHE_DEVICE float exp2_fast(float x) { return exp2f(x); }
LATHE_DEVICE float reciprocal_fast(float x) { return 1.0f / x; }
#endif

namespace math {  // functions of formulas, on floats

#define LATHE_MATH LATHE_DEVICE
#include "base/scalar_math.inc"
#undef LATHE_MATH

LATHE_DEVICE float pow(float a, float b) { return powf(a, b); }
LATHE_DEVICE float fma(float a, float b, float c) { return fmaf(a, b, c); }
// a / b, by the reciprocal of b: the remainder of the product is exact and mends it. Of numbers that are rounded to
// integers next, for it may lack the last bit of the least ones, and the sign of zero; the first, where the quotient is
// of levels.
LATHE_DEVICE float quotient_within(float a, float b, float reciprocal) {
  const float product = a * reciprocal;
  return fmaf(fmaf(product, -b, a), reciprocal, product);
}
// The same by both parts of 1 / b, of such numbers as the host has found to be rounded alike (level_quotient.h).
LATHE_DEVICE float quotient_by_parts(float a, float high, float low) { return fmaf(a, high, a * low); }
// The nearest integer, half to even, of what is no more than 2^22. NaN stays, and 0 has no sign. rintf() takes as long
// as eight additions.
LATHE_DEVICE float nearest_level(float a) { return (a + 0x1.8p23f) - 0x1.8p23f; }
LATHE_DEVICE float divided_by(float a, float b, float reciprocal) {
  const float product = a * reciprocal;
  return fabsf(product) < 0x1p100f ? quotient_within(a, b, reciprocal) : product;
}
// NaN stays.
LATHE_DEVICE float above(float a, float low) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(low));
  return a;
#else
  return at_least(a, low);
#endif
}
LATHE_DEVICE float within(float a, float low, float high) {
  a = above(a, low);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(high));
  return a;
#else
  return at_most(a, high);
#endif
}
LATHE_DEVICE float abs(float a) { return fabsf(a); }
LATHE_DEVICE float sqrt(float a) { return sqrtf(a); }
LATHE_DEVICE float exp(float a) { return expf(a); }
LATHE_DEVICE float expm1(float a) { return expm1f(a); }
LATHE_DEVICE float log(float a) { return logf(a); }
LATHE_DEVICE float erf(float a) { return erff(a); }
LATHE_DEVICE float sin(float a) { return sinf(a); }
LATHE_DEVICE float cos(float a) { return cosf(a); }
LATHE_DEVICE float floor(float a) { return floorf(a); }
LATHE_DEVICE float ceil(float a) { return ceilf(a); }
LATHE_DEVICE float round(float a) { return rintf(a); }
// The multiple of a power of two that is nearest to a, half to even: of `share` of the largest power of two in |a|, and
// at least of `least`, all of them far from the ends of what a float holds, so that the reciprocal is one, too.
LATHE_DEVICE float nearest_multiple(float a, float share, float least) {
  const float unit = at_least(bit_cast<float>(bit_cast<uint32>(a) & 0x7f800000u) * share, least);
  return rintf(a * bit_cast<float>(0x7f000000u - bit_cast<uint32>(unit))) * unit;
}
LATHE_DEVICE float nearest_f16(float a) { return f16_to_float(f16_bits(a)); }
LATHE_DEVICE float nearest_bf16(float a) { return bf16_to_float(bf16_bits(a)); }
LATHE_DEVICE float tanh(float a) { return tanhf(a); }
// By the exponential of -|a|, which cannot overflow: its relative error is |a| ulp, so the result's is some ulp of 1,
// and 1e-5 of itself at -87.
LATHE_DEVICE float sigmoid(float a) {
  const float e = exp2_fast(-1.44269504088896340736f * fabsf(a));
  return (a < 0 ? e : 1.0f) * reciprocal_fast(1.0f + e);
}
LATHE_DEVICE float silu(float a) { return a * sigmoid(a); }
LATHE_DEVICE float softplus(float a) { return at_least(a, 0.0f) + log1pf(expf(-fabsf(a))); }
LATHE_DEVICE float mish(float a) { return a * tanhf(softplus(a)); }
// max(a, 0) - h with h = x * erfc(x / sqrt(2)) / 2 and x = |a|, whose factor beside exp(-x^2 / 2) is smooth in
// t = 1 / (1 + 0.425 x): a polynomial that minimises the relative error over 0 <= x <= 20 is exact to 4e-7.
LATHE_DEVICE float gelu_erf(float a) {
  const float x = fabsf(a) < 20.0f ? fabsf(a) : 20.0f;
  const float t = reciprocal_fast(fmaf(0.425f, x, 1.0f));
  float q = -0.04570606121460752f;
  q = fmaf(q, t, 0.20414537182176654f);
  q = fmaf(q, t, -0.3177809159262359f);
  q = fmaf(q, t, 0.13670261594055158f);
  q = fmaf(q, t, 0.03868457446274041f);
  q = fmaf(q, t, 0.14539870847297443f);
  q = fmaf(q, t, 0.16898538636137198f);
  q = fmaf(q, t, 0.16957034905156187f);
  const float h = x * t * q * exp2_fast(-0.72134752044448170368f * x * x);
  return (a > 0 ? a : 0.0f * a) - h;  // 0 * a: NaN stays, and -infinity has no value
}
// The same for results that are kept in 16 bits: h = x 2^p(x), where p is a polynomial that minimises the error of
// log2(erfc(x / sqrt(2)) / 2) over 0 <= x <= 13.2, where h vanishes. The result is exact to 5e-6 above -1 and to 5e-5
// above -6, a tenth of half an ulp of f16, and to 2e-4 or 2e-37 below; at -infinity it is the limit 0.
LATHE_DEVICE float gelu_erf_16(float a) {
  const float x = fabsf(a) < 13.2f ? fabsf(a) : 13.2f;
  float p = -0x1.045b5cp-29f;
  p = fmaf(p, x, 0x1.2f68a2p-23f);
  p = fmaf(p, x, -0x1.3411aep-18f);
  p = fmaf(p, x, 0x1.691c96p-14f);
  p = fmaf(p, x, -0x1.1214a4p-10f);
  p = fmaf(p, x, 0x1.20716ap-7f);
  p = fmaf(p, x, -0x1.bd4f32p-5f);
  p = fmaf(p, x, -0x1.d53422p-2f);
  p = fmaf(p, x, -0x1.26bc72p+0f);
  p = fmaf(p, x, -0x1.ffff12p-1f);
  return fmaf(-x, exp2_fast(p), above(a, 0.0f));
}

// The same for results in f16, whose least number is 6e-8: h is 1.1e-8 from x = 5.9 on. Their error is a hundredth of
// an ulp.
LATHE_DEVICE float gelu_erf_half(float a) {
  const float x = fabsf(a) < 5.9f ? fabsf(a) : 5.9f;
  float p = 0x1.14ca8cp-15f;
  p = fmaf(p, x, -0x1.8bf4f8p-11f);
  p = fmaf(p, x, 0x1.0548d0p-7f);
  p = fmaf(p, x, -0x1.b3286cp-5f);
  p = fmaf(p, x, -0x1.d61e7cp-2f);
  p = fmaf(p, x, -0x1.26ac4ep+0f);
  p = fmaf(p, x, -0x1.00005ap+0f);
  return fmaf(-x, exp2_fast(p), above(a, 0.0f));
}

// The same for results that are rounded to 8-bit floats, of whose positive numbers the least is 2^-18 or more: h is
// 9e-7 from x = 5.1 on. The error is a sixhundredth of an ulp from x = -5.1 on, and nothing at the least result, x =
// 0.7518, near which many lie: so each is that of a number which differs by less than f16 rounds.
LATHE_DEVICE float gelu_erf_8(float a) {
  const float x = fabsf(a) < 5.1f ? fabsf(a) : 5.1f;
  float p = -0x1.54a24ep-12f;
  p = fmaf(p, x, 0x1.80aebap-8f);
  p = fmaf(p, x, -0x1.8c3850p-5f);
  p = fmaf(p, x, -0x1.db279ep-2f);
  p = fmaf(p, x, -0x1.262c84p+0f);
  p = fmaf(p, x, -0x1.0008b8p+0f);
  return fmaf(-x, exp2_fast(p), above(a, 0.0f));
}

}  // namespace math

// Operands, then parameters, of an instruction that has so many.
#define LATHE_ARGUMENTS_0_1(T) T x
#define LATHE_ARGUMENTS_1_0(T) T a
#define LATHE_ARGUMENTS_1_1(T) T a, T x
#define LATHE_ARGUMENTS_1_2(T) T a, T x, T y
#define LATHE_ARGUMENTS_2_0(T) T a, T b
#define LATHE_ARGUMENTS_3_0(T) T a, T b, T c
#define LATHE_INSTRUCTION_ON(T, name, operands, parameters, formula)  \
  LATHE_DEVICE T name(LATHE_ARGUMENTS_##operands##_##parameters(T)) { \
    using real [[maybe_unused]] = T;                                  \
    return formula;                                                   \
  }

namespace instruction {
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) \
  LATHE_INSTRUCTION_ON(float, name, operands, parameters, formula)
#include "base/scalars.def"
}  // namespace instruction
