// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers, four in each lane of a vector. For *_simd.cpp files, like simd.h.
#pragma once

#include "kernels/cpu/gemm/tile.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {

// sums + the four products of each lane, with the CPU's instruction for it. It is written out, for the flags of the
// level do not include it; see multiplies_bytes().
struct ByteProducts {
  static constexpr bool kUnrolled = true;
  // With a row of B, an element of A and what flips its sign in registers as well.
  static constexpr int max_rows(int vectors) {
    constexpr int by_registers[2][gemm::kMaxTileVectors] = {{8, 5, 3, 2}, {12, 12, 9, 6}};
    return by_registers[kVecRegisters == 32][vectors - 1];
  }
  LATHE_INLINE static IntVec add(IntVec sums, IntVec a, IntVec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
#elif defined(LATHE_ISA_LEVEL_avx2)
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(a), "x"(b));
#endif
    return sums;
  }
};

// The same by products of 16 bits, which no sum of two exceeds. (Those of u8 and i8, vpmaddubsw, saturate.)
struct ShortProducts {
  // Nine instructions each: unrolled, they want more registers than there are, and greater tiles save one in twenty.
  static constexpr bool kUnrolled = false;
  static constexpr int max_rows(int vectors) { return vectors > 2 && kVecRegisters < 32 ? 2 : 4; }
  LATHE_INLINE static IntVec add(IntVec sums, IntVec a, IntVec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
    const auto x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
    const __m512i even = _mm512_madd_epi16(_mm512_and_si512(x, _mm512_set1_epi32(0x00ff00ff)),
                                           _mm512_srai_epi16(_mm512_slli_epi16(y, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(x, 8), _mm512_srai_epi16(y, 8));
    return sums + reinterpret_cast<IntVec>(even) + reinterpret_cast<IntVec>(odd);
#elif defined(LATHE_ISA_LEVEL_avx2)
    const auto x = reinterpret_cast<__m256i>(a), y = reinterpret_cast<__m256i>(b);
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, _mm256_set1_epi32(0x00ff00ff)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(y, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(y, 8));
    return sums + reinterpret_cast<IntVec>(even) + reinterpret_cast<IntVec>(odd);
#elif defined(__x86_64__)
    const auto x = reinterpret_cast<__m128i>(a), y = reinterpret_cast<__m128i>(b);
    const __m128i even =
        _mm_madd_epi16(_mm_and_si128(x, _mm_set1_epi32(0x00ff00ff)), _mm_srai_epi16(_mm_slli_epi16(y, 8), 8));
    const __m128i odd = _mm_madd_epi16(_mm_srli_epi16(x, 8), _mm_srai_epi16(y, 8));
    return sums + reinterpret_cast<IntVec>(even) + reinterpret_cast<IntVec>(odd);
#else
    for (int i = 0; i < 4; ++i) sums += (a >> (8 * i) & 255) * (b << (24 - 8 * i) >> 24);
    return sums;
#endif
  }
};

}  // namespace lathe::cpu::LATHE_ISA
