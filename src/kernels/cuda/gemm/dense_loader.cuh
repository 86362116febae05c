// SPDX-License-Identifier: Apache-2.0
// Copies blocks of a matrix from global memory into panels. What lies outside of the matrix becomes zero.
#pragma once

#include "gemm/panel.cuh"
#include "lib/intrinsics.cuh"

namespace gemm {

// kWidth elements; the first `valid` of them are read.
template <class T, int kWidth>
LATHE_DEVICE void copy_elements(char* shared, const T* global, int valid) {
  constexpr int kBytes = kWidth * static_cast<int>(sizeof(T));
  if constexpr (kBytes == 16) {
    copy_async16(shared, global, valid * static_cast<int>(sizeof(T)));
  } else if constexpr (kBytes == 8) {
    copy_async8(shared, global, valid * static_cast<int>(sizeof(T)));
  } else if constexpr (kBytes == 4) {
    copy_async4(shared, global, valid * static_cast<int>(sizeof(T)));
  } else {
    static_assert(kWidth == 1, "narrow copies are of single elements");
    *reinterpret_cast<T*>(shared) = valid > 0 ? *global : T{};
  }
}

LATHE_DEVICE int min_of(long a, int b) { return a < b ? static_cast<int>(a) : b; }
LATHE_DEVICE int clamp(int value, int limit) { return value < 0 ? 0 : value < limit ? value : limit; }

// The matrix is contiguous along its columns. Blocks follow each other along K: kMnMajor says that K runs down
// the rows. kWidth elements are copied at once; kWholeRows and kWholeColumns promise that those of all blocks exist.
template <class T, class Panel, int kThreads, int kWidth, bool kMnMajor, bool kWholeRows, bool kWholeColumns>
class DenseLoader {
 public:
  using Element = T;
  using Block = Panel;
  static constexpr int kAtOnceInRow = kWidth;

  LATHE_DEVICE_MEMBER void start(const T* data, long pitch, long row, long rows, long column, long columns) {
    pitch_ = pitch;
    at_ = data + (row + row_of(0)) * pitch + column + column_of(0);
    rows_left_ = min_of(rows - row, kMany) - row_of(0);
    columns_left_ = min_of(columns - column, kMany) - column_of(0);
  }

  LATHE_DEVICE_MEMBER void fetch(char* panel, bool wanted) {
    panel += Panel::offset(row_of(0), column_of(0));
    LATHE_NO_UNROLL
    for (int first = 0; first < kPasses; first += kAtOnce) {
      LATHE_UNROLL
      for (int i = first; i < first + kAtOnce && i < kPasses; ++i) {
        const int row = rows_ahead(i), column = columns_ahead(i);
        if (kUneven && row_of(i) >= Panel::kRows) break;
        const int width = kWholeColumns ? kWidth : clamp(columns_left_ - column, kWidth);
        const int valid = wanted && (kWholeRows || row < rows_left_) ? width : 0;
        copy_elements<T, kWidth>(panel + bytes_ahead(i), at_ + row * pitch_ + column, valid);
      }
    }
    if constexpr (kMnMajor) {
      at_ += Panel::kRows * pitch_;
      rows_left_ -= Panel::kRows;
    } else {
      at_ += Panel::kColumns;
      columns_left_ -= Panel::kColumns;
    }
  }

  LATHE_DEVICE_MEMBER void place(char*) {}
  LATHE_DEVICE_MEMBER void finish(char*) {}

 protected:
  static constexpr int kPerRow = Panel::kColumns / kWidth;
  static constexpr int kPasses = (Panel::kRows * kPerRow + kThreads - 1) / kThreads;
  static constexpr bool kUneven = Panel::kRows * kPerRow % kThreads != 0;

  LATHE_DEVICE_MEMBER static int row_of(int i) { return (thread_x() + i * kThreads) / kPerRow; }
  LATHE_DEVICE_MEMBER static int column_of(int i) { return (thread_x() + i * kThreads) % kPerRow * kWidth; }

 private:
  static constexpr int kMany = 1 << 30;
  // Copies through registers are few at once, for want of them.
  static constexpr int kAtOnce = kWidth * sizeof(T) < 4 ? 4 : kPasses;
  static constexpr bool kSteady = kThreads % (kPerRow * 8) == 0;  // all copies of a thread have one column and swizzle

  // From the thread's first copy to its copy `i`.
  LATHE_DEVICE_MEMBER static int rows_ahead(int i) {
    return kSteady ? i * (kThreads / kPerRow) : row_of(i) - row_of(0);
  }
  LATHE_DEVICE_MEMBER static int columns_ahead(int i) { return kSteady ? 0 : column_of(i) - column_of(0); }
  LATHE_DEVICE_MEMBER static int bytes_ahead(int i) {
    if constexpr (kSteady) return i * (kThreads / kPerRow) * Panel::kRowBytes;
    return Panel::offset(row_of(i), column_of(i)) - Panel::offset(row_of(0), column_of(0));
  }

  const T* at_;  // the thread's first element of the block
  long pitch_;
  int rows_left_;  // from there
  int columns_left_;
};

}  // namespace gemm
