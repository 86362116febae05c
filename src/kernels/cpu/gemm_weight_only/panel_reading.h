// SPDX-License-Identifier: Apache-2.0
// What kernels read of PackedPanels beside codes. For *_simd.cpp files, like simd.h.
#pragma once

#include "kernels/cpu/gemm_weight_only/gemm_weight_only.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd_levels.h"

namespace lathe::cpu::LATHE_ISA {

// What codes are: integers of 4 or 8 bits, or floats of as many.
constexpr int kE2m1 = 21, kE4m3 = 43, kE5m2 = 52;
constexpr int bits_of(int form) { return form == 4 || form == kE2m1 ? 4 : 8; }

// f16 as f32: the exponents' biases differ by 112.
LATHE_INLINE Vec load_halves(const uint16_t* from) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  IntVec bits;
  for (int i = 0; i < kLanes; ++i) bits[i] = from[i];
  const Vec magnitude = as_float((bits & 0x7fff) << 13) * broadcast(0x1p112f);
  return as_float(as_int(magnitude) | (bits & 0x8000) << 16);
#endif
}

LATHE_INLINE Vec load_scales(const gemm::PackedPanels& panels, const std::byte* block, int column) {
  return panels.half_scales ? load_halves(reinterpret_cast<const uint16_t*>(block) + column)
                            : load(reinterpret_cast<const float*>(block) + column);
}

LATHE_INLINE IntVec load_zeros(const gemm::PackedPanels& panels, const std::byte* block, int column) {
  return load_bytes(reinterpret_cast<const uint8_t*>(block + panels.scale_bytes()) + column, kLanes);
}

// A panel from one end to the other, so that it is read once: piece(block, codes, k, depth) for up to kDepth neighbours
// along K, in one block each.
template <int64_t kDepth, class F>
LATHE_INLINE void read_in_pieces(const gemm::PackedPanels& panels, const std::byte* panel, F&& piece) {
  constexpr int64_t kLine = 64;
  const int64_t distance = fetch_distance();
  const std::byte *block = panel, *fetched = panel;
  for (int64_t first = 0; first < panels.k; first += panels.block, block += panels.block_bytes()) {
    const int64_t end = panels.k - first < panels.block ? panels.k : first + panels.block;
    const std::byte* codes = block + panels.scale_bytes() + panels.zero_bytes();
    for (int64_t k = first; k < end; k += kDepth, codes += panels.code_bytes(kDepth)) {
      const int64_t depth = end - k < kDepth ? end - k : kDepth;
      for (const std::byte* end_of_piece = codes + panels.code_bytes(depth); fetched < end_of_piece + distance;
           fetched += kLine)
        prefetch(fetched);
      piece(block, codes, k, depth);
    }
  }
}

}  // namespace lathe::cpu::LATHE_ISA
