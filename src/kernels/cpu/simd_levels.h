// SPDX-License-Identifier: Apache-2.0
// Integers of 8 bits to and from floats. For *_simd.cpp files, like simd.h.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {

// A vector of products that are rounded before they are added to something: else -ffp-contract=fast makes one rounding
// of both.
template <class V>
LATHE_INLINE V rounded(V product) {
#if defined(__x86_64__)
  asm("" : "+v"(product));
#else
  asm("" : "+m"(product));
#endif
  return product;
}

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

LATHE_INLINE IntVec min_int(IntVec a, IntVec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return reinterpret_cast<IntVec>(_mm512_min_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#else
  return select(a < b, a, b);
#endif
}
LATHE_INLINE IntVec max_int(IntVec a, IntVec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return reinterpret_cast<IntVec>(_mm512_max_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#else
  return select(a > b, a, b);
#endif
}

// a * b + c, rounded once where the level can, also where compilers contract nothing (g++ -O1).
LATHE_INLINE Vec fused_add(Vec a, Vec b, Vec c) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

// x / scale of an x that was clamped to what a few levels are worth. It is a true quotient: its rounding error is
// computed and added.
struct Quotient {
  explicit LATHE_INLINE Quotient(float scale) : scale(broadcast(scale)), factor(broadcast(1 / scale)) {}
  LATHE_INLINE Vec operator()(Vec x) const {
    const Vec quotient = x * factor;
    return fused_add(fused_add(-quotient, scale, x), factor, quotient);
  }
  Vec scale, factor;
};

// Whether it is, for levels of 16 bits: elsewhere the error itself is rounded.
LATHE_INLINE bool has_quotients(float scale) {
#if defined(LATHE_ISA_LEVEL_avx512) || defined(LATHE_ISA_LEVEL_avx2)
  return scale > 0x1p-100f && scale < 0x1p100f;
#else
  return scale != scale;
#endif
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

// Bytes [begin, end) of a vector of them; the others are 0, and are not read.
LATHE_INLINE IntVec load_vector_of_bytes(const uint8_t* from, int begin, int end) {
#if defined(LATHE_ISA_LEVEL_avx512)
  const auto first = [](int n) { return _bzhi_u64(~uint64_t{0}, static_cast<uint64_t>(n)); };
  return reinterpret_cast<IntVec>(_mm512_maskz_loadu_epi8(first(end) & ~first(begin), from));
#else
  IntVec bytes{};
  __builtin_memcpy(reinterpret_cast<uint8_t*>(&bytes) + begin, from + begin, static_cast<size_t>(end - begin));
  return bytes;
#endif
}

// Of bytes that lie in the lanes of four vectors. in_turns: byte i is in vector i / 4 % 4, lane i / 16 * 4 + i % 4, for
// so it comes from instructions that take bytes of two vectors in turns, within each 16.
enum class ByteOrder { in_a_row, in_turns };

// Four rows of bytes become lanes that have one of each, in four vectors: see ByteOrder.
LATHE_INLINE void interleave(const IntVec (&rows)[4], IntVec (&fours)[4]) {
#if defined(__x86_64__)
#if defined(LATHE_ISA_LEVEL_avx512)
#define LATHE_UNPACK(part, a, b) \
  reinterpret_cast<IntVec>(_mm512_unpack##part(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)))
#elif defined(LATHE_ISA_LEVEL_avx2)
#define LATHE_UNPACK(part, a, b) \
  reinterpret_cast<IntVec>(_mm256_unpack##part(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)))
#else
#define LATHE_UNPACK(part, a, b) \
  reinterpret_cast<IntVec>(_mm_unpack##part(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)))
#endif
  const IntVec first[2] = {LATHE_UNPACK(lo_epi8, rows[0], rows[1]), LATHE_UNPACK(hi_epi8, rows[0], rows[1])};
  const IntVec second[2] = {LATHE_UNPACK(lo_epi8, rows[2], rows[3]), LATHE_UNPACK(hi_epi8, rows[2], rows[3])};
  LATHE_UNROLL
  for (int half = 0; half < 2; ++half) {
    fours[2 * half] = LATHE_UNPACK(lo_epi16, first[half], second[half]);
    fours[2 * half + 1] = LATHE_UNPACK(hi_epi16, first[half], second[half]);
  }
#undef LATHE_UNPACK
#else
  const auto* bytes = reinterpret_cast<const uint8_t*>(rows);
  for (int i = 0; i < kVecBytes; ++i) {
    uint32_t four = 0;
    for (int r = 0; r < 4; ++r) four |= static_cast<uint32_t>(bytes[r * kVecBytes + i]) << 8 * r;
    fours[i / 4 % 4][i / 16 * 4 + i % 4] = static_cast<int32_t>(four);
  }
#endif
}

// Levels become bytes: clip(level + zero, least, most) ^ flip of u8, four bytes of `flip`. Levels are at least 2^8
// below the greatest i32.
struct BytePacking {
  LATHE_INLINE BytePacking(int32_t zero, int32_t least, int32_t most, int32_t flip)
#if defined(__x86_64__)
      : zero(broadcast_int(zero * 0x10001)),
        least(broadcast_int(static_cast<int32_t>(static_cast<uint32_t>(least) * 0x1010101))),
        most(broadcast_int(static_cast<int32_t>(static_cast<uint32_t>(most) * 0x1010101))),
        flip(broadcast_int(flip)),
#else
      : zero(broadcast_int(zero)),
        least(broadcast_int(least)),
        most(broadcast_int(most)),
        flip(broadcast_int(flip)),
#endif
        is_plain(zero == 0 && least == 0 && most == 255 && flip == 0) {
  }
  IntVec zero, least, most, flip;
  bool is_plain;  // clip(level, 0, 255)
};

#if defined(LATHE_ISA_LEVEL_avx512)
// The bytes of four vectors of levels, in turns.
LATHE_INLINE __m512i pack_in_turns(const IntVec (&levels)[4], const BytePacking& packing) {
  const auto of = [](IntVec v) { return reinterpret_cast<__m512i>(v); };
  __m512i low = _mm512_packs_epi32(of(levels[0]), of(levels[1])),
          high = _mm512_packs_epi32(of(levels[2]), of(levels[3]));
  if (packing.is_plain) return _mm512_packus_epi16(low, high);
  low = _mm512_adds_epi16(low, of(packing.zero));
  high = _mm512_adds_epi16(high, of(packing.zero));
  __m512i bytes = _mm512_packus_epi16(low, high);
  bytes = _mm512_max_epu8(_mm512_min_epu8(bytes, of(packing.most)), of(packing.least));
  return _mm512_xor_si512(bytes, of(packing.flip));
}
LATHE_INLINE __m512i in_a_row(__m512i bytes) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}
#endif

#if defined(LATHE_ISA_LEVEL_avx512)
LATHE_INLINE void store_narrow(std::byte* to, __m512i bytes, int n) {
  if (n & 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(bytes));
    bytes = _mm512_shuffle_i32x4(bytes, bytes, 0xee);
    to += 32;
  }
  __m128i rest = _mm512_castsi512_si128(bytes);
  if (n & 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), rest);
    rest = _mm512_extracti32x4_epi32(bytes, 1);
    to += 16;
  }
  if (n & 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), rest);
    rest = _mm_bsrli_si128(rest, 8);
    to += 8;
  }
  if (n & 7) _mm_mask_storeu_epi8(to, static_cast<__mmask16>((1u << (n & 7)) - 1), rest);
}
#endif

// The first n bytes of four vectors of levels. Pairs of vectors are narrowed within 16 bytes each, so that at the end
// the order of bytes that lie in a row is mended.
// kNarrow: by instructions that reach no byte behind them, for a load of those would wait.
template <ByteOrder kOrder = ByteOrder::in_a_row, bool kNarrow = false>
LATHE_INLINE void store_packed(void* to, const IntVec (&levels)[4], int n, const BytePacking& packing) {
#if defined(LATHE_ISA_LEVEL_avx512)
  __m512i bytes = pack_in_turns(levels, packing);
  if constexpr (kOrder == ByteOrder::in_a_row) bytes = in_a_row(bytes);
  if (n == 64)
    _mm512_storeu_si512(to, bytes);
  else if (n == 32)
    _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_castsi512_si256(bytes));
  else if (n == 16)
    _mm_storeu_si128(static_cast<__m128i*>(to), _mm512_castsi512_si128(bytes));
  else if (kNarrow)
    store_narrow(static_cast<std::byte*>(to), bytes, n);
  else
    _mm512_mask_storeu_epi8(to, (uint64_t{1} << n) - 1, bytes);
#elif defined(LATHE_ISA_LEVEL_avx2)
  const auto of = [](IntVec v) { return reinterpret_cast<__m256i>(v); };
  const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(of(levels[0]), of(levels[1])), of(packing.zero));
  const __m256i high = _mm256_adds_epi16(_mm256_packs_epi32(of(levels[2]), of(levels[3])), of(packing.zero));
  __m256i bytes = _mm256_packus_epi16(low, high);
  bytes = _mm256_max_epu8(_mm256_min_epu8(bytes, of(packing.most)), of(packing.least));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  bytes = _mm256_xor_si256(bytes, of(packing.flip));
  if constexpr (kOrder == ByteOrder::in_a_row) bytes = _mm256_permutevar8x32_epi32(bytes, order);
  __builtin_memcpy(to, &bytes, static_cast<size_t>(n));
#elif defined(__x86_64__)
  const auto of = [](IntVec v) { return reinterpret_cast<__m128i>(v); };
  const __m128i low = _mm_adds_epi16(_mm_packs_epi32(of(levels[0]), of(levels[1])), of(packing.zero));
  const __m128i high = _mm_adds_epi16(_mm_packs_epi32(of(levels[2]), of(levels[3])), of(packing.zero));
  __m128i bytes = _mm_packus_epi16(low, high);
  bytes = _mm_max_epu8(_mm_min_epu8(bytes, of(packing.most)), of(packing.least));
  bytes = _mm_xor_si128(bytes, of(packing.flip));
  __builtin_memcpy(to, &bytes, static_cast<size_t>(n));
#else
  for (int v = 0; v * kLanes < n; ++v) {
    IntVec level = levels[v] + packing.zero;
    level = select(level < packing.most, level, packing.most);
    level = select(level > packing.least, level, packing.least) ^ packing.flip;
    store_bytes(static_cast<std::byte*>(to) + v * kLanes, level, n - v * kLanes < kLanes ? n - v * kLanes : kLanes);
  }
#endif
}

}  // namespace lathe::cpu::LATHE_ISA
