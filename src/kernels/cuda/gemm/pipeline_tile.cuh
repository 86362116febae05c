// SPDX-License-Identifier: Apache-2.0
// The tile of a product whose panels the copy engine brings: groups of four warps multiply 64 rows each, or have tiles
// of their own, and one warp of a further group asks for panels (gemm/pipeline.cuh).
#pragma once

#include "gemm/promotion.cuh"
#include "gemm/staging.cuh"
#include "lib/tensor_copies.cuh"

namespace gemm {

// A panel as wgmma reads it and the copy engine writes it, in rows of 128 bytes: `kOuter` rows along K, or, MN-major,
// rows of K in blocks of 64 elements of M or N.
template <class T, int kOuter, bool kMnMajor>
struct CopiedPanel {
  static constexpr int kElements = 128 / static_cast<int>(sizeof(T));  // of a row, and of K
  static constexpr int kBytes = kOuter * 128, kBlockBytes = kElements * 128;
  static constexpr int kGroupBytes = 64 * 128;  // of what four warps multiply
  // 32 bytes of K further.
  static constexpr int kStepBytes = kMnMajor ? 32 / static_cast<int>(sizeof(T)) * 128 : 32;
};

// kPeers blocks of a cluster have tiles below each other, and bring each other parts of B. kTurns: each
// of two groups takes whole tiles; while one multiplies, the other finishes the tile before (decision 0079).
// kNeighbours: the columns of B come in such an order that a thread's sums are of so many neighbouring ones, 8 or 16
// (decision 0119); 0 = of pairs.
template <class T, int kM_, int kN_, int kStages_, int kPeers_, bool kMnMajorA_, bool kMnMajorB_, bool kTurns_,
          int kNeighbours_>
struct PipelineTile {
  using Element = T;
  static constexpr int kM = kM_, kN = kN_, kK = 128 / static_cast<int>(sizeof(T)), kStages = kStages_, kPeers = kPeers_;
  static constexpr bool kMnMajorA = kMnMajorA_, kMnMajorB = kMnMajorB_, kTurns = kTurns_;
  static constexpr int kNeighbours = kNeighbours_;
  static constexpr int kGroups = kTurns ? 2 : kM / 64, kConsumers = 4 * kGroups;  // warps that multiply
  static constexpr int kReaders = kTurns ? 4 : kConsumers;                        // warps that read a panel
  static constexpr int kRowTiles = kTurns ? kM / 64 : 1;
  // A panel is multiplied in parts of its columns where sums of all of them would not fit registers twice.
  static constexpr int kParts = kPromotes<T> && kN > 192 ? 2 : 1, kPartN = kN / kParts;
  using PanelA = CopiedPanel<T, kM, kMnMajorA>;
  using PanelB = CopiedPanel<T, kN, kMnMajorB>;
  static_assert(kM % 64 == 0 && kN % 32 == 0, "what the instruction takes");
  static_assert(kPeers == 1 || kN / kPeers % (kMnMajorB ? 64 : 8) == 0, "peers bring whole blocks");

  static_assert(kNeighbours == 0 || (!kMnMajorB && kN / kPeers % (4 * kNeighbours) == 0),
                "whole groups of columns, along K");
  static_assert(!kTurns || !kPromotes<T>, "a group that waits for each panel does not keep the matrix units busy");

  // Of a part of the columns.
  struct Sums {
    using Accumulator = typename MatrixSum<T>::Type;
    static constexpr int kN = kPartN, kRowTiles = PipelineTile::kRowTiles;
    Accumulator acc[kRowTiles][kN / 8][4];

    LATHE_DEVICE_MEMBER static int warp_row() { return row_of_warp<kGroups>(); }
  };
  Sums sums[kParts];
  typename PanelSumsOf<T, kPartN>::Type panel;

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int part = 0; part < kParts; ++part) clear_sums(sums[part].acc);
  }

  // Begins to add the product of the panels, or of a part of B's, of the rows from `first` on: a group of work.
  LATHE_DEVICE_MEMBER void multiply(const char* a, const char* b, int first, int part = 0) {
    constexpr int kSteps = 4;
    a += first / 64 * PanelA::kGroupBytes;
    b += part * kPartN * 128;
    wgmma_fence();
    LATHE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const char *from_a = a + step * PanelA::kStepBytes, *from_b = b + step * PanelB::kStepBytes;
      if constexpr (kPromotes<T>) {
        panel.multiply(from_a, from_b, step == 0);
      } else {
        LATHE_UNROLL
        for (int i = 0; i < kRowTiles; ++i)
          wgmma<kN, kMnMajorA, kMnMajorB, PanelA::kBlockBytes, PanelB::kBlockBytes>(
              sums[0].acc[i], from_a + i * PanelA::kGroupBytes, from_b, T{});
      }
    }
    wgmma_commit();
  }

  LATHE_DEVICE_MEMBER void prepare_panel() {}  // while it is multiplied
  LATHE_DEVICE_MEMBER void add_panel(int part) { panel.add_to(sums[part].acc[0]); }
};

}  // namespace gemm
