// SPDX-License-Identifier: Apache-2.0
#include "ops/float_lines.h"

#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace lathe {
namespace {

#ifdef __x86_64__

namespace avx512 {
#define LATHE_LEVEL [[gnu::target("avx512f,avx512dq")]]

constexpr int kSide = 16;

using Floats [[gnu::vector_size(64)]] = float;
using Half [[gnu::vector_size(32)]] = float;
constexpr __mmask8 kAll = 0xff;

LATHE_LEVEL inline Half scaled(const float* from, double factor) {
  Half values;
  std::memcpy(&values, from, sizeof values);
  const __m512d wide = _mm512_maskz_cvtps_pd(kAll, values);  // g++ 12 converts halves of vectors
  return _mm512_maskz_cvtpd_ps(kAll, wide * factor);
}
// Apart, so that the registers of what is usual are not spilled for it.
LATHE_LEVEL [[gnu::noinline]] void scale_wide(const std::byte* from, int64_t step, const double* factors,
                                              Floats* lines) {
  for (int i = 0; i < kSide; ++i) {
    const auto* const line = reinterpret_cast<const float*>(from + i * step);
    const Half halves[2] = {scaled(line, factors[i]), scaled(line + 8, factors[i])};
    std::memcpy(&lines[i], halves, sizeof halves);
  }
}

// What is called from outside ends with zeroupper, which compilers leave out of code that is to be small.
LATHE_LEVEL void prepare(const double* factors, LineFactors& result) {
  result.wide = factors;
  result.are_floats = true;
  for (int i = 0; i < kSide; i += 8) {
    const __m512d wide = _mm512_loadu_pd(factors + i);
    const __m256 narrow = _mm512_maskz_cvtpd_ps(kAll, wide);
    _mm256_store_ps(&result.narrow[i], narrow);
    result.are_floats &= _mm512_cmp_pd_mask(_mm512_maskz_cvtps_pd(kAll, narrow), wide, _CMP_EQ_OQ) == kAll;
  }
  _mm256_zeroupper();
}

// These keep within each 16 bytes, a block.
LATHE_LEVEL inline Floats low_numbers(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
LATHE_LEVEL inline Floats high_numbers(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
LATHE_LEVEL inline Floats low_pairs(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
}
LATHE_LEVEL inline Floats high_pairs(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
LATHE_LEVEL inline Floats even_blocks(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
LATHE_LEVEL inline Floats odd_blocks(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

LATHE_LEVEL void transpose(const std::byte* from, int64_t step, const LineFactors& factors, std::byte* const* columns,
                           bool past_caches) {
  Floats rows[kSide], next[kSide];
  if (factors.are_floats) {
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) {
      std::memcpy(&rows[i], from + i * step, sizeof rows[i]);
      rows[i] *= factors.narrow[i];
    }
  } else {
    Floats products[kSide];
    scale_wide(from, step, factors.wide, products);
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) rows[i] = products[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < kSide; i += 2) {
    next[i] = low_numbers(rows[i], rows[i + 1]);
    next[i + 1] = high_numbers(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kSide; i += 4) {
    rows[i] = low_pairs(next[i], next[i + 2]);
    rows[i + 1] = high_pairs(next[i], next[i + 2]);
    rows[i + 2] = low_pairs(next[i + 1], next[i + 3]);
    rows[i + 3] = high_pairs(next[i + 1], next[i + 3]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const Floats even = even_blocks(rows[k], rows[4 + k]), even_below = even_blocks(rows[8 + k], rows[12 + k]);
    const Floats odd = odd_blocks(rows[k], rows[4 + k]), odd_below = odd_blocks(rows[8 + k], rows[12 + k]);
    next[k] = even_blocks(even, even_below);
    next[4 + k] = even_blocks(odd, odd_below);
    next[8 + k] = odd_blocks(even, even_below);
    next[12 + k] = odd_blocks(odd, odd_below);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) {
    auto* const to = reinterpret_cast<float*>(columns[i]);
    past_caches ? _mm512_stream_ps(to, next[i]) : _mm512_storeu_ps(to, next[i]);
  }
  _mm256_zeroupper();
}

#undef LATHE_LEVEL
}  // namespace avx512

#endif

}  // namespace

#ifdef __x86_64__
ScaledTransposer scaled_transposer(cpu::IsaLevel level) {
  return level == cpu::IsaLevel::avx512 ? ScaledTransposer{avx512::prepare, avx512::transpose} : ScaledTransposer{};
}
#else
ScaledTransposer scaled_transposer(cpu::IsaLevel) { return {}; }
#endif

}  // namespace lathe
