// SPDX-License-Identifier: Apache-2.0
// How threads share the copies of a panel when each stays in one column of its rows.
#pragma once

#include "gemm/panel.cuh"
#include "lib/intrinsics.cuh"

namespace gemm {

template <class Panel, int kThreads, int kWidth>
struct ColumnCopies {
  static constexpr int kPerRow = Panel::kColumns / kWidth;
  static constexpr int kRowsPerPass = kThreads / kPerRow;
  static constexpr int kPasses = (Panel::kRows + kRowsPerPass - 1) / kRowsPerPass;
  static constexpr bool kUneven = Panel::kRows % kRowsPerPass != 0;
  static_assert(kThreads % kPerRow == 0, "a thread stays in its column");

  LATHE_DEVICE_MEMBER static int column() { return thread_x() % kPerRow * kWidth; }
  LATHE_DEVICE_MEMBER static int row_of(int i) { return thread_x() / kPerRow + i * kRowsPerPass; }
  // Bytes from the thread's first copy to its copy `i`.
  LATHE_DEVICE_MEMBER static int bytes_ahead(int i) {
    if constexpr (kRowsPerPass % 8 == 0) return i * kRowsPerPass * Panel::kRowBytes;
    return Panel::offset(row_of(i), column()) - Panel::offset(row_of(0), column());
  }
};

}  // namespace gemm
