// SPDX-License-Identifier: Apache-2.0
// Integers of 8 bits to and from floats. For *_simd.cpp files, like simd.h.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {

// The first n of kLanes; the others are 0.
template <class T>
LATHE_INLINE IntVec load_bytes(const T* from, int n) {
#if defined(LATHE_ISA_LEVEL_avx512)
  const __m128i bytes = n == kLanes ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))
                                    : _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << n) - 1), from);
  return reinterpret_cast<IntVec>(std::is_signed_v<T> ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
#elif defined(LATHE_ISA_LEVEL_avx2)
  uint64_t eight = 0;
  if (n == kLanes)
    __builtin_memcpy(&eight, from, kLanes);
  else
    __builtin_memcpy(&eight, from, static_cast<size_t>(n));
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(eight));
  return reinterpret_cast<IntVec>(std::is_signed_v<T> ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#else
  IntVec v{};
  for (int i = 0; i < n; ++i) v[i] = from[i];
  return v;
#endif
}
template <class T>
LATHE_INLINE Vec load_levels(const T* from, int n) {
  return to_float(load_bytes(from, n));
}

// The lowest bytes of the first n lanes.
LATHE_INLINE void store_bytes(void* to, IntVec levels, int n) {
#if defined(LATHE_ISA_LEVEL_avx512)
  const auto lanes = reinterpret_cast<__m512i>(levels);
  if (n == kLanes)
    _mm_storeu_si128(static_cast<__m128i*>(to), _mm512_cvtepi32_epi8(lanes));
  else
    _mm512_mask_cvtepi32_storeu_epi8(to, static_cast<__mmask16>((1u << n) - 1), lanes);
#elif defined(LATHE_ISA_LEVEL_avx2)
  const __m256i order = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                         -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i halves = _mm256_shuffle_epi8(reinterpret_cast<__m256i>(levels), order);
  const __m128i bytes = _mm_or_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  const int64_t eight = _mm_cvtsi128_si64(bytes);
  __builtin_memcpy(to, &eight, static_cast<size_t>(n));
#else
  for (int i = 0; i < n; ++i) static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(levels[i]);
#endif
}

}  // namespace lathe::cpu::LATHE_ISA
