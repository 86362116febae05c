// SPDX-License-Identifier: Apache-2.0
// The instructions of the fusion program (device/program.def), one function each: operands first, then immediates.
// NaN goes where the plain evaluation lets it go. Errors are a few ulp.
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

namespace instruction {

LATHE_DEVICE float constant(float x) { return x; }
LATHE_DEVICE float add(float a, float b) { return a + b; }
LATHE_DEVICE float sub(float a, float b) { return a - b; }
LATHE_DEVICE float mul(float a, float b) { return a * b; }
LATHE_DEVICE float div(float a, float b) { return a / b; }
// fmaxf and fminf drop NaN. With a NaN in b the comparison fails and b is the result.
LATHE_DEVICE float max(float a, float b) { return a >= b || a != a ? a : b; }
LATHE_DEVICE float min(float a, float b) { return a <= b || a != a ? a : b; }
LATHE_DEVICE float pow(float a, float b) { return powf(a, b); }
LATHE_DEVICE float fma(float a, float b, float c) { return fmaf(a, b, c); }
LATHE_DEVICE float affine(float a, float x, float y) { return fmaf(a, x, y); }
LATHE_DEVICE float less(float a, float b) { return a < b ? 1.0f : 0.0f; }
LATHE_DEVICE float equal(float a, float b) { return a == b ? 1.0f : 0.0f; }
LATHE_DEVICE float select(float a, float b, float c) { return a != 0 ? b : c; }

LATHE_DEVICE float neg(float a) { return -a; }
LATHE_DEVICE float abs(float a) { return fabsf(a); }
LATHE_DEVICE float sqrt(float a) { return sqrtf(a); }
LATHE_DEVICE float recip(float a) { return 1.0f / a; }
LATHE_DEVICE float exp(float a) { return expf(a); }
LATHE_DEVICE float log(float a) { return logf(a); }
LATHE_DEVICE float erf(float a) { return erff(a); }
LATHE_DEVICE float sin(float a) { return sinf(a); }
LATHE_DEVICE float cos(float a) { return cosf(a); }
LATHE_DEVICE float floor(float a) { return floorf(a); }
LATHE_DEVICE float ceil(float a) { return ceilf(a); }
LATHE_DEVICE float round(float a) { return rintf(a); }
LATHE_DEVICE float sign(float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : a; }
LATHE_DEVICE float tanh(float a) { return tanhf(a); }
// By the exponential of -|a|, which cannot overflow: its relative error is |a| ulp, so the result's is some ulp of 1,
// and 1e-5 of itself at -87.
LATHE_DEVICE float sigmoid(float a) {
  const float e = exp2_fast(-1.44269504088896340736f * fabsf(a));
  return (a < 0 ? e : 1.0f) * reciprocal_fast(1.0f + e);
}

LATHE_DEVICE float relu(float a) { return max(a, 0.0f); }
LATHE_DEVICE float clip(float a, float x, float y) { return min(max(a, x), y); }
LATHE_DEVICE float leaky_relu(float a, float x) { return a < 0 ? a * x : a; }
LATHE_DEVICE float elu(float a, float x) { return a < 0 ? x * expm1f(a) : a; }
LATHE_DEVICE float selu(float a, float x, float y) { return a > 0 ? y * a : y * x * expm1f(a); }
LATHE_DEVICE float celu(float a, float x) { return max(a, 0.0f) + min(0.0f, x * expm1f(a / x)); }
LATHE_DEVICE float softplus(float a) { return max(a, 0.0f) + log1pf(expf(-fabsf(a))); }
LATHE_DEVICE float softsign(float a) { return a / (1.0f + fabsf(a)); }
LATHE_DEVICE float hard_sigmoid(float a, float x, float y) { return min(max(fmaf(a, x, y), 0.0f), 1.0f); }
// (a + 3) / 6 keeps its relative precision near -3, where a / 6 + 0.5 loses it.
LATHE_DEVICE float hard_swish(float a) { return a * min(max((a + 3.0f) * (1.0f / 6.0f), 0.0f), 1.0f); }
LATHE_DEVICE float silu(float a) { return a * sigmoid(a); }
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
LATHE_DEVICE float gelu_tanh(float a) { return a * sigmoid(1.59576912160573071176f * fmaf(0.044715f * a * a, a, a)); }
LATHE_DEVICE float thresholded_relu(float a, float x) { return a > x ? a : 0.0f; }
LATHE_DEVICE float mish(float a) { return a * tanhf(softplus(a)); }
LATHE_DEVICE float prelu(float a, float b) { return a < 0 ? a * b : a; }

}  // namespace instruction
