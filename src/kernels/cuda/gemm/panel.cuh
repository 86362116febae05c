// SPDX-License-Identifier: Apache-2.0
// A block of an operand in shared memory: rows of elements that are contiguous in memory too, cut in chunks of 16
// bytes.
#pragma once

#include "lib/types.cuh"

namespace gemm {

// Chunks are permuted within a row by XOR so that eight consecutive rows at one chunk lie in distinct banks: what
// ldmatrix and vector reads of K-major panels touch at once. With kWords the permutation serves single words instead:
// four consecutive rows at eight consecutive columns (fragments of 32-bit elements from a panel that is not K-major).
template <class T, int kRows_, int kColumns_, bool kWords = false>
struct Panel {
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kRowBytes = kColumns * static_cast<int>(sizeof(T));
  static constexpr int kBytes = kRows * kRowBytes;
  static constexpr int kChunks = kRowBytes / 16;
  static_assert(kRowBytes % 16 == 0, "rows are whole chunks");
  static_assert(!kWords || kChunks % 8 == 0, "words are permuted within 128 bytes");

  LATHE_DEVICE_MEMBER static int swizzle(int row) {
    if constexpr (kWords) return (row & 3) << 1;
    if constexpr (kChunks % 8 == 0) return row & 7;
    if constexpr (kChunks % 4 == 0) return (row >> 1) & 3;
    if constexpr (kChunks % 2 == 0) return (row >> 2) & 1;
    return 0;
  }
  // Bytes from the panel's start.
  LATHE_DEVICE_MEMBER static int chunk_offset(int row, int chunk) {
    return row * kRowBytes + ((chunk ^ swizzle(row)) << 4);
  }
  LATHE_DEVICE_MEMBER static int offset(int row, int column) {
    const int bytes = column * static_cast<int>(sizeof(T));
    return chunk_offset(row, bytes >> 4) + (bytes & 15);
  }
};

}  // namespace gemm
