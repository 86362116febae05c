// SPDX-License-Identifier: Apache-2.0
// Vectors of f32 as pairs of bf16 (gemm/pairs.h), for *_simd.cpp files.
#pragma once

#include <utility>

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {

// To the nearest, half to even, in the upper 16 bits; NaNs stay such.
LATHE_INLINE UintVec rounded_to_bf16(Vec x) {
  const auto bits = reinterpret_cast<UintVec>(x);
  return x == x ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x400000;
}

// Those of two vectors whose numbers are even, or odd.
template <int kFirst, int... kLane>
LATHE_INLINE Vec every_second(Vec a, Vec b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (kFirst + 2 * kLane)...);
}

struct SlowBf16 {
  LATHE_INLINE static Vec pair_lanes(Vec first, Vec second) {
    return reinterpret_cast<Vec>(rounded_to_bf16(first) >> 16 | (rounded_to_bf16(second) & 0xffff0000u));
  }
  LATHE_INLINE static Vec pair_neighbours(Vec a, Vec b) {
    constexpr std::make_integer_sequence<int, kLanes> lanes;
    return pair_lanes(every_second<0>(a, b, lanes), every_second<1>(a, b, lanes));
  }
};

#if defined(LATHE_ISA_LEVEL_avx512)
// By the CPU's instruction, which goes with that for products. Numbers too small for a full exponent become 0.
struct FastBf16 {
  LATHE_INLINE static Vec pair_neighbours(Vec a, Vec b) {
    Vec both;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(a), "v"(b));
    return both;
  }
  LATHE_INLINE static Vec pair_lanes(Vec first, Vec second) {
    alignas(64) static constexpr uint16_t order[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return reinterpret_cast<Vec>(
        _mm512_permutexvar_epi16(_mm512_load_si512(order), reinterpret_cast<__m512i>(pair_neighbours(first, second))));
  }
};
#else
using FastBf16 = SlowBf16;
#endif

}  // namespace lathe::cpu::LATHE_ISA
