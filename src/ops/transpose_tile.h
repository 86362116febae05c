// SPDX-License-Identifier: Apache-2.0
// Transposition of squares of elements of any size in registers of 16 bytes, which every processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lathe {

// Elements of one register, and how those of two are interleaved.
template <class T>
struct TileLine;

#define LATHE_TILE_LINE(T, low, high)                                                               \
  template <>                                                                                       \
  struct TileLine<T> {                                                                              \
    using Vec [[gnu::vector_size(16)]] = T;                                                         \
    static Vec low_halves(Vec a, Vec b) { return __builtin_shufflevector(a, b, LATHE_ARGS low); }   \
    static Vec high_halves(Vec a, Vec b) { return __builtin_shufflevector(a, b, LATHE_ARGS high); } \
  };
#define LATHE_ARGS(...) __VA_ARGS__
LATHE_TILE_LINE(uint8_t, (0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                (8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
LATHE_TILE_LINE(uint16_t, (0, 8, 1, 9, 2, 10, 3, 11), (4, 12, 5, 13, 6, 14, 7, 15))
LATHE_TILE_LINE(uint32_t, (0, 4, 1, 5), (2, 6, 3, 7))
LATHE_TILE_LINE(uint64_t, (0, 2), (1, 3))
#undef LATHE_ARGS
#undef LATHE_TILE_LINE

template <class T>
inline constexpr int kTileSide = 16 / sizeof(T);

// kTileSide lines of as many elements, so many bytes apart on either side; `change` has what becomes of each line.
// To be inlined, so that what `change` needs stays in registers from tile to tile.
template <class T, class Change>
[[gnu::always_inline]] inline void transpose_tile(const std::byte* from, int64_t from_step, std::byte* to,
                                                  int64_t to_step, const Change& change) {
  using Vec = typename TileLine<T>::Vec;
  constexpr int kSide = kTileSide<T>;
  Vec lines[kSide], next[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) {
    std::memcpy(&lines[i], from + i * from_step, sizeof(Vec));
    lines[i] = change.of_line(i, lines[i]);
  }
  // Interleaving line i with line i + kSide / 2, for all i, log2(kSide) times.
#pragma GCC unroll 4
  for (int step = 1; step < kSide; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kSide / 2; ++i) {
      next[2 * i] = TileLine<T>::low_halves(lines[i], lines[i + kSide / 2]);
      next[2 * i + 1] = TileLine<T>::high_halves(lines[i], lines[i + kSide / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) lines[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) std::memcpy(to + i * to_step, &lines[i], sizeof(Vec));
}

}  // namespace lathe
