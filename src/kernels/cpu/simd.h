// SPDX-License-Identifier: Apache-2.0
// The thin SIMD layer. Only *_simd.cpp files (and headers for them alone) include it: everything here lives in the
// namespace of the ISA level that the file is being compiled for, with that level's vector width.
//
// Vec and IntVec are compiler vector types: + - * / & | ^ ~ << >> and comparisons work on them, a comparison gives an
// IntVec of 0 / -1 per lane, a scalar operand is broadcast, and a * b + c becomes a fused multiply-add where the level
// has one (the files are compiled with -ffp-contract=fast).
#pragma once

#ifndef LATHE_ISA
#error "simd.h is for *_simd.cpp files, which are compiled once per ISA level"
#endif

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LATHE_INLINE inline __attribute__((always_inline))
// Unrolls the loop that follows entirely (up to 16 turns): arrays of Vec stay in registers only then.
#define LATHE_UNROLL _Pragma("GCC unroll 16")

namespace lathe::cpu::LATHE_ISA {

#if defined(LATHE_ISA_LEVEL_avx512)
inline constexpr int kVecBytes = 64;
inline constexpr int kVecRegisters = 32;
#elif defined(LATHE_ISA_LEVEL_avx2)
inline constexpr int kVecBytes = 32;
inline constexpr int kVecRegisters = 16;
#elif defined(__aarch64__)
inline constexpr int kVecBytes = 16;
inline constexpr int kVecRegisters = 32;
#else
inline constexpr int kVecBytes = 16;
inline constexpr int kVecRegisters = 16;
#endif
inline constexpr int kLanes = kVecBytes / 4;

typedef float Vec __attribute__((vector_size(kVecBytes)));
typedef int32_t IntVec __attribute__((vector_size(kVecBytes)));
typedef uint32_t UintVec __attribute__((vector_size(kVecBytes)));
typedef float UnalignedVec __attribute__((vector_size(kVecBytes), aligned(4), may_alias));
typedef int32_t UnalignedIntVec __attribute__((vector_size(kVecBytes), aligned(4), may_alias));

LATHE_INLINE Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
LATHE_INLINE void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
LATHE_INLINE IntVec load_int(const int32_t* p) { return *reinterpret_cast<const UnalignedIntVec*>(p); }
LATHE_INLINE void store_int(int32_t* p, IntVec v) { *reinterpret_cast<UnalignedIntVec*>(p) = v; }

LATHE_INLINE IntVec as_int(Vec v) { return reinterpret_cast<IntVec>(v); }
LATHE_INLINE Vec as_float(IntVec v) { return reinterpret_cast<Vec>(v); }

LATHE_INLINE Vec zero() { return Vec{}; }
LATHE_INLINE Vec broadcast(float x) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_set1_ps(x);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_set1_ps(x);
#elif defined(__x86_64__)
  return _mm_set1_ps(x);
#elif defined(__aarch64__)
  return vdupq_n_f32(x);
#else
  return x - Vec{};  // not x + 0: that loses the sign of -0
#endif
}
LATHE_INLINE IntVec broadcast_int(int32_t x) { return x - IntVec{}; }
LATHE_INLINE IntVec iota() {
  IntVec v;
  for (int i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}

// The first n lanes (0 <= n <= kLanes); the other lanes load as 0 and are not touched in memory.
LATHE_INLINE Vec load_tail(const float* p, int n) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_maskload_ps(p, reinterpret_cast<__m256i>(iota() < n));
#else
  Vec v{};
  for (int i = 0; i < kLanes; ++i)
    if (i < n) v[i] = p[i];
  return v;
#endif
}
LATHE_INLINE void store_tail(float* p, int n, Vec v) {
#if defined(LATHE_ISA_LEVEL_avx512)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
#elif defined(LATHE_ISA_LEVEL_avx2)
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(iota() < n), v);
#else
  for (int i = 0; i < kLanes; ++i)
    if (i < n) p[i] = v[i];
#endif
}

LATHE_INLINE Vec mul_add(Vec a, Vec b, Vec c) { return a * b + c; }

// mask ? a : b, lane by lane; mask is the result of a comparison.
LATHE_INLINE Vec select(IntVec mask, Vec a, Vec b) { return mask ? a : b; }
LATHE_INLINE IntVec select(IntVec mask, IntVec a, IntVec b) { return mask ? a : b; }

// One instruction; b where a or b is NaN. So max_or_second(constant, x) keeps the NaNs of x.
LATHE_INLINE Vec max_or_second(Vec a, Vec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_max_ps(a, b);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_max_ps(a, b);
#elif defined(__x86_64__)
  return _mm_max_ps(a, b);
#else
  return select(a > b, a, b);
#endif
}
LATHE_INLINE Vec min_or_second(Vec a, Vec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_min_ps(a, b);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_min_ps(a, b);
#elif defined(__x86_64__)
  return _mm_min_ps(a, b);
#else
  return select(a < b, a, b);
#endif
}
// NaN where either is NaN.
LATHE_INLINE Vec max_nan(Vec a, Vec b) { return select(a != a, a, max_or_second(a, b)); }
LATHE_INLINE Vec min_nan(Vec a, Vec b) { return select(a != a, a, min_or_second(a, b)); }

LATHE_INLINE Vec abs(Vec a) { return as_float(as_int(a) & 0x7fffffff); }
// The magnitude of a with the sign of b.
LATHE_INLINE Vec copy_sign(Vec a, Vec b) {
  return as_float((as_int(a) & 0x7fffffff) | (as_int(b) & static_cast<int32_t>(0x80000000u)));
}

LATHE_INLINE Vec sqrt(Vec a) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_sqrt_ps(a);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_sqrt_ps(a);
#elif defined(__x86_64__)
  return _mm_sqrt_ps(a);
#else
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
#endif
}

LATHE_INLINE Vec round_even(Vec a) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__x86_64__)
  return _mm_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return vrndnq_f32(a);
#else
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_rintf(a[i]);
  return a;
#endif
}
LATHE_INLINE Vec floor(Vec a) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__x86_64__)
  return _mm_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return vrndmq_f32(a);
#else
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_floorf(a[i]);
  return a;
#endif
}
LATHE_INLINE Vec ceil(Vec a) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_round_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
#elif defined(__x86_64__)
  return _mm_round_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return vrndpq_f32(a);
#else
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_ceilf(a[i]);
  return a;
#endif
}

// Conversions; out-of-range values and NaN give an unspecified integer.
LATHE_INLINE Vec to_float(IntVec a) { return __builtin_convertvector(a, Vec); }
LATHE_INLINE IntVec truncate_to_int(Vec a) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return reinterpret_cast<IntVec>(_mm512_cvttps_epi32(a));
#elif defined(LATHE_ISA_LEVEL_avx2)
  return reinterpret_cast<IntVec>(_mm256_cvttps_epi32(a));
#elif defined(__x86_64__)
  return reinterpret_cast<IntVec>(_mm_cvttps_epi32(a));
#else
  return __builtin_convertvector(a, IntVec);
#endif
}
// Rounds half to even.
LATHE_INLINE IntVec round_to_int(Vec a) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return reinterpret_cast<IntVec>(_mm512_cvtps_epi32(a));
#elif defined(LATHE_ISA_LEVEL_avx2)
  return reinterpret_cast<IntVec>(_mm256_cvtps_epi32(a));
#elif defined(__x86_64__)
  return reinterpret_cast<IntVec>(_mm_cvtps_epi32(a));
#else
  return truncate_to_int(round_even(a));
#endif
}

// Folds the upper half of the lanes onto the lower, again and again; the order is the same for every compiler. Lanes
// beyond the half that is still of interest hold leftovers.
template <class F>
LATHE_INLINE float fold_lanes(Vec v, F&& combine) {
#if defined(LATHE_ISA_LEVEL_avx512)
  v = combine(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
  v = combine(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7));
  v = combine(v, __builtin_shufflevector(v, v, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3));
  v = combine(v, __builtin_shufflevector(v, v, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
#elif defined(LATHE_ISA_LEVEL_avx2)
  v = combine(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7));
  v = combine(v, __builtin_shufflevector(v, v, 2, 3, 2, 3, 2, 3, 2, 3));
  v = combine(v, __builtin_shufflevector(v, v, 1, 1, 1, 1, 1, 1, 1, 1));
#else
  v = combine(v, __builtin_shufflevector(v, v, 2, 3, 2, 3));
  v = combine(v, __builtin_shufflevector(v, v, 1, 1, 1, 1));
#endif
  return v[0];
}
LATHE_INLINE float reduce_add(Vec v) {
  return fold_lanes(v, [](Vec a, Vec b) { return a + b; });
}
// NaN if any lane is.
LATHE_INLINE float reduce_max(Vec v) {
  return fold_lanes(v, [](Vec a, Vec b) { return max_nan(a, b); });
}

// Hints that the line at p will be read soon: into L1, or into L2 only.
LATHE_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
LATHE_INLINE void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace lathe::cpu::LATHE_ISA
