// SPDX-License-Identifier: Apache-2.0
// Elementary functions on vectors, for *_simd.cpp files. Each is correct at +-0, +-inf, NaN and denormal numbers, and
// within 4 ulp of the true value unless its comment says otherwise. The polynomials are minimax fits, in f32, of the
// function named beside them.
#pragma once

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {

inline constexpr float kInfinity = __builtin_inff();

LATHE_INLINE bool any_lane(IntVec mask) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask)) != 0;
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_ps(reinterpret_cast<__m128>(mask)) != 0;
#else
  int32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= mask[i];
  return any != 0;
#endif
}

// Horner's rule, constant coefficient first.
template <int n>
LATHE_INLINE Vec polynomial(Vec x, const float (&c)[n]) {
  Vec sum = broadcast(c[n - 1]);
#pragma GCC unroll 32
  for (int i = n - 2; i >= 0; --i) sum = sum * x + broadcast(c[i]);
  return sum;
}

// a * 2^n for an integral n in [-252, 254], also where the result is denormal or infinite.
LATHE_INLINE Vec scale_by_power_of_2(Vec a, Vec n) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_scalef_ps(a, n);
#else
  const IntVec whole = round_to_int(n), half = whole >> 1;
  return a * as_float((half + 127) << 23) * as_float((whole - half + 127) << 23);
#endif
}

// x = n * ln 2 + r with |r| <= ln 2 / 2; expm1(r) = r + r^2 q(r).
struct ExpParts {
  Vec n, expm1_r;
};
LATHE_INLINE ExpParts exp_parts(Vec x, Vec n) {
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // n * high is exact
  const Vec r = (x - n * kLn2High) - n * kLn2Low;
  const Vec q = polynomial(r, {0.5f, 0.16666542f, 0.0416662805f, 0.00836664438f, 0.00139465544f});
  return {n, r + r * r * q};
}
inline constexpr float kLog2E = 1.44269504f;

LATHE_INLINE Vec exp(Vec x) {
  x = min_or_second(broadcast(89.0f), max_or_second(broadcast(-104.0f), x));  // beyond: inf and 0
  const ExpParts parts = exp_parts(x, round_even(x * kLog2E));
  return scale_by_power_of_2(parts.expm1_r + 1.0f, parts.n);
}

LATHE_INLINE Vec expm1(Vec x) {
  const Vec clamped = min_or_second(broadcast(89.0f), max_or_second(broadcast(-20.0f), x));
  const ExpParts parts = exp_parts(clamped, min_or_second(broadcast(127.0f), round_even(clamped * kLog2E)));
  const Vec power = as_float((round_to_int(parts.n) + 127) << 23);
  return select(x == 0.0f, x, power * parts.expm1_r + (power - 1.0f));
}

LATHE_INLINE Vec log(Vec x) {
  constexpr int32_t kSqrtHalf = 0x3f3504f3;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const IntVec tiny = x < 1.17549435e-38f;
  const Vec normal = select(tiny, x * 8388608.0f, x);  // where it is negative the difference wraps and is not used
  const auto bits = reinterpret_cast<IntVec>(reinterpret_cast<UintVec>(normal) - static_cast<uint32_t>(kSqrtHalf));
  const Vec e = to_float((bits >> 23) - (tiny & 23));
  const Vec f = as_float((bits & 0x7fffff) + kSqrtHalf) - 1.0f;  // in [sqrt(1/2) - 1, sqrt(2) - 1)
  const Vec p = polynomial(f, {0.333333313f, -0.250008196f, 0.200012267f, -0.166233569f, 0.142017588f, -0.131601825f,
                               0.12761575f, -0.0763449296f});  // (log(1 + f) - f + f^2 / 2) / f^3
  const Vec f2 = f * f;
  const Vec finite = e * kLn2High + (f + (e * kLn2Low + (f2 * f * p - 0.5f * f2)));
  const Vec edge = select(x == 0.0f, broadcast(-kInfinity), broadcast(__builtin_nanf("")));
  return select(x > 0.0f, select(x < kInfinity, finite, x), select(x != x, x, edge));
}

// log(1 + u) for 0 <= u <= 1.
LATHE_INLINE Vec log1p_unit(Vec u) {
  return u * polynomial(u, {1.0f, -0.499999821f, 0.333325595f, -0.249872714f, 0.19890748f, -0.161056906f, 0.124184348f,
                            -0.0824417323f, 0.0414782055f, -0.01340752f, 0.00203023921f});
}

// Below -88 these are 0, where the true values are denormal.
LATHE_INLINE Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }
LATHE_INLINE Vec silu(Vec x) { return x / (1.0f + exp(-x)); }

// Half the work: sigmoid within 4 ulp above -80, and 2e-38 at most below -87.
LATHE_INLINE Vec sigmoid_quick(Vec x) {
#if defined(LATHE_ISA_LEVEL_avx512)
  // 1 / (1 + 2^t) with t = -x / ln 2 = n + r.
  const Vec clamped = min_or_second(broadcast(87.0f), max_or_second(broadcast(-87.0f), x));
  const Vec n = round_even(clamped * -kLog2E);
  // Fused explicitly: the product must not be rounded. The second step makes up for the rounding of log2(e) itself.
  const Vec r = static_cast<Vec>(_mm512_fmsub_ps(clamped, broadcast(-kLog2E), n)) - clamped * 1.92596303e-8f;
  const Vec p =
      polynomial(r, {1.0f, 0.693147182f, 0.240226462f, 0.0555032842f, 0.00961817801f, 0.00133982347f, 0.000154353139f});
  const Vec d = scale_by_power_of_2(p, n) + 1.0f;
  const Vec y = _mm512_rcp14_ps(d);
  return y + y * (1.0f - d * y);
#else
  return sigmoid(x);
#endif
}
// Within 4 ulp above -80, within 1e-33 of the true value below; -0 at -inf.
LATHE_INLINE Vec silu_quick(Vec x) {
#if defined(LATHE_ISA_LEVEL_avx512)
  x = max_or_second(broadcast(-87.0f), x);
  return x * sigmoid_quick(x);
#else
  return silu(x);
#endif
}

LATHE_INLINE Vec tanh(Vec x) {
  const Vec t = expm1(abs(x) * -2.0f);
#if defined(LATHE_ISA_LEVEL_avx512)
  const Vec d = t + 2.0f, y = _mm512_rcp14_ps(d);  // in [1, 2]
  return copy_sign(t * (y + y * (1.0f - d * y)), x);
#else
  return copy_sign(t / (t + 2.0f), x);
#endif
}

LATHE_INLINE Vec softplus(Vec x) { return max_or_second(zero(), x) + log1p_unit(exp(-abs(x))); }

// x * tanh(log(1 + e^x)) = x * w / (w + 2) with w = e^2x + 2 e^x; above 20 the factor is 1.
LATHE_INLINE Vec mish(Vec x) {
  const Vec e = exp(min_or_second(broadcast(20.0f), x));
  const Vec w = e * (e + 2.0f);
  return x * (w / (w + 2.0f));
}

// Within 8 ulp. erf(x) / x as a polynomial in x^2, mapped to [-1, 1]; 1 above 3.85.
LATHE_INLINE Vec erf(Vec x) {
  constexpr float kTop = 3.85f;
  const Vec s = min_or_second(broadcast(kTop * kTop), x * x);
  const Vec p = polynomial(s * (2 / (kTop * kTop)) - 1.0f,
                           {0.367284805f, -0.183301419f, 0.136213228f, -0.11038807f, 0.0907884091f, -0.0731556788f,
                            0.0566113107f, -0.0412254892f, 0.0276838019f, -0.0180467889f, 0.012108746f, -0.00641068537f,
                            0.00183210976f, -0.00119086192f, 0.00153727864f, -0.000600459636f});
  const Vec inside = min_or_second(broadcast(1.0f), max_or_second(broadcast(-1.0f), x * p));
  return select(abs(x) > kTop, copy_sign(broadcast(1.0f), x), inside);
}

// 0.5 x (1 + erf(x / sqrt 2)) = max(x, 0) - t g(t) with t = |x|, g(t) = erfc(t / sqrt 2) / 2 = (1 - u)^4 p(u) and u = t
// mapped to [-1, 1]. The absolute error is below 1e-7, and below 3e-8 where x < -4. At -inf this is the limit 0.
LATHE_INLINE Vec gelu_erf(Vec x) {
  constexpr float kTop = 5.9f;  // above, t g(t) < 1.1e-8
  const Vec t = min_or_second(broadcast(kTop), abs(x));
  const Vec u = t * (2 / kTop) - 1.0f;
  const Vec p = polynomial(u, {0.00158886437f, -0.00881545618f, 0.0212179907f, -0.025358595f, 0.00736162253f,
                               0.0212810189f, -0.0297091678f, 0.00795379095f, 0.0201588478f, -0.0216347259f,
                               -0.00594991166f, 0.0159500837f, 0.00240805582f, -0.00500248652f, -0.00145255448f});
  const Vec v = 1.0f - u, v2 = v * v;
  return max_or_second(zero(), x) - (t * p) * (v2 * v2);
}

// 0.5 x (1 + tanh(z)) = x sigmoid(2 z). Within 12 ulp above -3; below, the rounding of z alone costs |2 z| ulp.
LATHE_INLINE Vec gelu_tanh(Vec x) {
  constexpr float kTwoSqrt2OverPi = 1.59576912f;
  return x * sigmoid(x * (kTwoSqrt2OverPi + (kTwoSqrt2OverPi * 0.044715f) * (x * x)));
}

// sin(x) for quarter = 0, cos(x) for quarter = 1.
LATHE_INLINE Vec sin_of_quarter(Vec x, int quarter) {
  constexpr float kTwoOverPi = 0.636619772f;
  constexpr float kHigh = 1.5703125f, kMiddle = 4.837512969970703125e-4f, kLow = 7.54978995489188216e-8f;  // pi / 2
  const Vec n = round_even(x * kTwoOverPi);
  const Vec r = ((x - n * kHigh) - n * kMiddle) - n * kLow;
  const Vec z = r * r;
  const Vec sine = r + r * z * polynomial(z, {-0.166666552f, 0.00833217334f, -0.000195166562f});
  const Vec cosine = 1.0f - 0.5f * z + z * z * polynomial(z, {0.0416666456f, -0.00138873619f, 2.44377297e-05f});
  const IntVec q = round_to_int(n) + quarter;
  const Vec magnitude = select((q & 1) == 0, sine, cosine);
  return as_float(as_int(magnitude) ^ ((q & 2) << 30));
}
// Beyond this the reduction above loses bits; such lanes, and inf and NaN, go through libm one by one.
inline constexpr float kMaxReduced = 8192;

LATHE_INLINE Vec sin(Vec x) {
  Vec y = sin_of_quarter(x, 0);
  if (__builtin_expect(any_lane(~(abs(x) < kMaxReduced)), 0))
    for (int i = 0; i < kLanes; ++i) y[i] = __builtin_fabsf(x[i]) < kMaxReduced ? y[i] : __builtin_sinf(x[i]);
  return select(x == 0.0f, x, y);
}
LATHE_INLINE Vec cos(Vec x) {
  Vec y = sin_of_quarter(x, 1);
  if (__builtin_expect(any_lane(~(abs(x) < kMaxReduced)), 0))
    for (int i = 0; i < kLanes; ++i) y[i] = __builtin_fabsf(x[i]) < kMaxReduced ? y[i] : __builtin_cosf(x[i]);
  return y;
}

// Through libm: the general power needs a logarithm of twice the precision.
LATHE_INLINE Vec pow(Vec a, Vec b) {
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_powf(a[i], b[i]);
  return a;
}

}  // namespace lathe::cpu::LATHE_ISA
