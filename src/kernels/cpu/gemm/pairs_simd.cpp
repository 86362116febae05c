// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/pairs.h"

#include <utility>

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

// To the nearest, half to even, in the upper 16 bits; NaNs stay such.
LATHE_INLINE UintVec rounded(Vec x) {
  const auto bits = reinterpret_cast<UintVec>(x);
  return x == x ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x400000;
}

// Those of two vectors whose numbers are even, or odd.
template <int kFirst, int... kLane>
LATHE_INLINE Vec every_second(Vec a, Vec b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (kFirst + 2 * kLane)...);
}

struct Rounding {
  LATHE_INLINE static Vec pair_lanes(Vec first, Vec second) {
    return reinterpret_cast<Vec>(rounded(first) >> 16 | (rounded(second) & 0xffff0000u));
  }
  LATHE_INLINE static Vec pair_neighbours(Vec a, Vec b) {
    constexpr std::make_integer_sequence<int, kLanes> lanes;
    return pair_lanes(every_second<0>(a, b, lanes), every_second<1>(a, b, lanes));
  }
};

#if defined(LATHE_ISA_LEVEL_avx512)
// By the CPU's instruction, which goes with that for products. Numbers too small for a full exponent become 0.
struct FastRounding {
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
using FastRounding = Rounding;
#endif

LATHE_INLINE Vec load_some(const float* from, int64_t lanes) {
  return lanes >= kLanes ? load(from) : load_tail(from, lanes < 0 ? 0 : static_cast<int>(lanes));
}
LATHE_INLINE void store_some(float* to, int64_t lanes, Vec v) {
  lanes >= kLanes ? store(to, v) : store_tail(to, static_cast<int>(lanes), v);
}

template <class R>
void neighbours(const float* row, int64_t count, float* pairs) {
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    const Vec a = load_some(row + i, count - i), b = load_some(row + i + kLanes, count - i - kLanes);
    store_some(pairs + i / 2, (count - i + 1) / 2, R::pair_neighbours(a, b));
  }
}

template <class R>
void lanes(const float* first, const float* second, int count, float* pairs) {
  for (int i = 0; i < count; i += kLanes) {
    const Vec b = second ? load_some(second + i, count - i) : zero();
    store_some(pairs + i, count - i, R::pair_lanes(load_some(first + i, count - i), b));
  }
}

}  // namespace

void pair_neighbours(const float* row, int64_t count, float* pairs, bool multiplies_bf16) {
  (multiplies_bf16 ? neighbours<FastRounding> : neighbours<Rounding>)(row, count, pairs);
}

void pair_rows(const float* first, const float* second, int count, float* pairs, bool multiplies_bf16) {
  (multiplies_bf16 ? lanes<FastRounding> : lanes<Rounding>)(first, second, count, pairs);
}

}  // namespace lathe::cpu::LATHE_ISA
