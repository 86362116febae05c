// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/lookup/lookup.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {

#if defined(LATHE_ISA_LEVEL_avx512)
namespace {

// 64 of them: each half of the table lies in two registers, of which the instruction takes bytes by seven bits.
LATHE_INLINE __m512i permuted(const __m512i (&table)[4], __m512i indices) {
  __m512i low = indices, high = indices;
  asm("vpermi2b %2, %1, %0" : "+v"(low) : "v"(table[0]), "v"(table[1]));
  asm("vpermi2b %2, %1, %0" : "+v"(high) : "v"(table[2]), "v"(table[3]));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(indices), low, high);
}

}  // namespace
#endif

void look_up(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t count, [[maybe_unused]] bool permutes) {
  int64_t i = 0;
#if defined(LATHE_ISA_LEVEL_avx512)
  const __m512i quarters[4] = {_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64),
                               _mm512_loadu_si512(table + 128), _mm512_loadu_si512(table + 192)};
  for (; permutes && i + 64 <= count; i += 64)
    _mm512_storeu_si512(to + i, permuted(quarters, _mm512_loadu_si512(from + i)));
#endif
  for (; i < count; ++i) to[i] = table[from[i]];
}

}  // namespace lathe::cpu::LATHE_ISA
