// SPDX-License-Identifier: Apache-2.0
// The matrix registers of a tile (Intel AMX) and their instructions, for *_simd.cpp files.
#pragma once

#include "kernels/cpu/gemm/tile.h"
#include "kernels/cpu/simd.h"

#if defined(LATHE_ISA_LEVEL_avx512)
namespace lathe::cpu::LATHE_ISA {

using gemm::kMatrixRegisterRows;
using gemm::Tile;

// Floats in a row of a register: along K of A, and columns of B and of sums. So many rows has one of B.
inline constexpr int kDepth = 16;
// Registers: sums of rows i and columns j are number 2 i + j, then come two of A and two of B.
inline constexpr int kA = 4, kB = 6;

template <int kNumber>
LATHE_INLINE void load_matrix(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kNumber) : "memory");
}
template <int kNumber>
LATHE_INLINE void store_matrix(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kNumber) : "memory");
}
template <int kNumber>
LATHE_INLINE void clear_matrix() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kNumber));
}

// What a thread calls that has set them up.
inline void release_matrices() { asm volatile("tilerelease"); }

struct UnsignedBytes {
  template <int kSums, int kLeft, int kRight>
  LATHE_INLINE static void add() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
  }
};
struct SignedBytes {
  template <int kSums, int kLeft, int kRight>
  LATHE_INLINE static void add() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
  }
};
struct Pairs {
  template <int kSums, int kLeft, int kRight>
  LATHE_INLINE static void add() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
  }
};

// Rows of a tile's registers of A: a product takes about as many clocks as A has rows, and no less than nine.
struct Heights {
  int first, second;
};
LATHE_INLINE Heights heights_of(const Tile& tile) {
  if (tile.a_blocks) return {tile.height, tile.height};
  const int first = tile.rows <= kMatrixRegisterRows ? tile.rows : (tile.rows + 1) / 2;
  return {first, tile.rows > first ? tile.rows - first : 1};
}
LATHE_INLINE int first_rows(const Tile& tile) { return heights_of(tile).first; }

// What LDTILECFG reads (Intel's manual, volume 1, chapter 18). Registers of A and of sums have the tile's rows, or a
// block's.
struct alignas(64) Configuration {
  Configuration(Heights rows, int depth) {
    for (int i = 0; i < 8; ++i) bytes[i] = 64;
    for (int j = 0; j < 2; ++j) {
      heights[j] = heights[kA] = static_cast<uint8_t>(rows.first);
      heights[2 + j] = heights[kA + 1] = static_cast<uint8_t>(rows.second);
      bytes[kA + j] = static_cast<uint16_t>(4 * depth);
      heights[kB + j] = static_cast<uint8_t>(depth);
    }
  }
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t heights[16] = {};
};

// Loading it clears the registers and takes two hundred clocks, so that a thread does so where the rows change.
LATHE_INLINE void configure(Heights rows, int depth, int* configured) {
  const int code = rows.first << 16 | rows.second << 8 | depth;
  if (*configured == code) return;
  const Configuration configuration(rows, depth);
  asm volatile("ldtilecfg %0" ::"m"(configuration));
  *configured = code;
}
LATHE_INLINE void configure(const Tile& tile) {
  configure(heights_of(tile), tile.depth > 0 ? tile.depth : kDepth, tile.configured);
}

}  // namespace lathe::cpu::LATHE_ISA
#endif
