// SPDX-License-Identifier: Apache-2.0
// The product of two panels by groups of four warps, 64 rows each, whose matrix units read both from shared memory.
#pragma once

#include "gemm/panel.cuh"
#include "gemm/promotion.cuh"
#include "gemm/staging.cuh"

namespace gemm {

// Both operands are K-major, in rows of 128 bytes.
template <class T, int kM_, int kN_, int kStages_>
struct WgmmaTile {
  using Element = T;
  using Accumulator = typename MatrixSum<T>::Type;
  static constexpr int kM = kM_, kN = kN_, kK = 128 / static_cast<int>(sizeof(T)), kStages = kStages_;
  static constexpr int kWarpM = 16, kWarpN = kN;
  static constexpr int kWarpsM = kM / kWarpM, kWarpsN = 1, kWarpsK = 1;
  static constexpr int kThreads = 32 * kWarpsM;
  static constexpr bool kAsynchronous = true;  // see main_loop()
  using PanelA = Panel<T, kM, kK>;
  using PanelB = Panel<T, kN, kK>;
  static_assert(sizeof(T) <= 2 && kM % 64 == 0 && kN % 32 == 0,
                "what the instruction takes; whole groups of eight rows");

  Accumulator acc[1][kN / 8][4];
  typename PanelSumsOf<T, kN>::Type panel;

  LATHE_DEVICE_MEMBER void clear() { clear_sums(acc); }
  LATHE_DEVICE_MEMBER static int slice() { return 0; }
  LATHE_DEVICE_MEMBER static int warp_row() { return warp() * kWarpM; }
  LATHE_DEVICE_MEMBER static int warp_column() { return 0; }

  // Begins to add the panels' product: a group of work.
  LATHE_DEVICE_MEMBER void multiply(const char* a, const char* b) {
    constexpr int kSteps = 4, kStepBytes = 32;
    a += warp() / 4 * 64 * PanelA::kRowBytes;
    wgmma_fence();
    LATHE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const char *from_a = a + step * kStepBytes, *from_b = b + step * kStepBytes;
      if constexpr (kPromotes<T>)
        panel.multiply(from_a, from_b, step == 0);
      else
        wgmma_along_k<kN>(acc[0], from_a, from_b, T{});
    }
    wgmma_commit();
  }

  LATHE_DEVICE_MEMBER void prepare_panel() {}  // while it is multiplied
  LATHE_DEVICE_MEMBER void add_panel() { panel.add_to(acc[0]); }

  LATHE_DEVICE_MEMBER void stage(Accumulator* to, int pitch, int first, int rows) const {
    stage_sums(acc, to, pitch, first, rows);
  }
};

}  // namespace gemm
