// SPDX-License-Identifier: Apache-2.0
// The product of two panels without tensor cores: every thread multiplies and adds a tile in registers. For exact f32,
// for f64 and for integers, whose sums wrap.
#pragma once

#include "gemm/panel.cuh"
#include "gemm/staging.cuh"
#include "lib/intrinsics.cuh"

namespace gemm {

// A warp is 4 x 8 threads. Along a K-major panel a thread's rows are interleaved with its neighbours' (lane + 4 * i).
// Along an MN-major one it holds groups of kVector neighbouring rows, so that all reads are vectors without bank
// conflicts.
template <class T, class Accumulator_, int kM_, int kN_, int kK_, int kThreadM, int kThreadN, int kWarpsM_,
          int kWarpsN_, int kStages_, bool kMnMajorA_, bool kMnMajorB_>
struct SimtTile {
  using Element = T;
  using Accumulator = Accumulator_;
  static constexpr int kM = kM_, kN = kN_, kK = kK_, kStages = kStages_;
  static constexpr int kWarpM = 4 * kThreadM, kWarpN = 8 * kThreadN;
  static constexpr int kWarpsM = kWarpsM_, kWarpsN = kWarpsN_, kWarpsK = 1;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr bool kMnMajorA = kMnMajorA_, kMnMajorB = kMnMajorB_;
  static constexpr int kVector = sizeof(T) >= 8 ? 2 : 4;
  static constexpr int kSteps = kK / kVector;
  static constexpr bool kAsynchronous = false;
  static constexpr bool kAhead = false;  // registers are for the accumulators
  static constexpr int kBuffers = 1;
  using PanelA = Panel<T, kMnMajorA ? kK : kM, kMnMajorA ? kM : kK>;
  using PanelB = Panel<T, kMnMajorB ? kK : kN, kMnMajorB ? kN : kK>;
  static_assert(kM == kWarpM * kWarpsM && kN == kWarpN * kWarpsN, "whole warp tiles");
  static_assert(kThreadM % kVector == 0 && kThreadN % kVector == 0 && kSteps >= 2, "whole vectors");

  using Vector = Vec<T, kVector>;
  struct Fragments {  // [element][k of the step]
    T a[kThreadM][kVector];
    T b[kThreadN][kVector];
  };

  Accumulator acc[kThreadM][kThreadN];

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int i = 0; i < kThreadM; ++i) LATHE_UNROLL
    for (int j = 0; j < kThreadN; ++j) acc[i][j] = 0;
  }

  LATHE_DEVICE_MEMBER static int slice() { return 0; }
  LATHE_DEVICE_MEMBER static int warp_row() { return warp() / kWarpsN * kWarpM; }
  LATHE_DEVICE_MEMBER static int warp_column() { return warp() % kWarpsN * kWarpN; }

  LATHE_DEVICE_MEMBER static void load(Fragments& f, const char* a, const char* b, int step) {
    load_rows<PanelA, kMnMajorA, 4, kThreadM>(f.a, a, warp_row(), lane() / 8, step);
    load_rows<PanelB, kMnMajorB, 8, kThreadN>(f.b, b, warp_column(), lane() % 8, step);
  }

  LATHE_DEVICE_MEMBER void multiply(const Fragments& f) {
    LATHE_UNROLL
    for (int k = 0; k < kVector; ++k) LATHE_UNROLL
    for (int i = 0; i < kThreadM; ++i) LATHE_UNROLL
    for (int j = 0; j < kThreadN; ++j) acc[i][j] = add_product(acc[i][j], f.a[i][k], f.b[j][k]);
  }

  LATHE_DEVICE_MEMBER void stage(Accumulator* to, int pitch, int first, int rows) const {
    LATHE_UNROLL
    for (int i = 0; i < kThreadM; ++i) {
      const int row = place<kMnMajorA, 4>(lane() / 8, i) - first;
      if (row < 0 || row >= rows) continue;
      LATHE_UNROLL
      for (int j = 0; j < kThreadN; ++j)
        to[row * pitch + staged_column(place<kMnMajorB, 8>(lane() % 8, j))] = acc[i][j];
    }
  }

 private:
  LATHE_DEVICE_MEMBER static Accumulator add_product(Accumulator sum, T a, T b) {
    if constexpr (is_same<T, f16> || is_same<T, bf16>)
      return fmaf(to_float(a), to_float(b), sum);
    else if constexpr (is_float<T>)
      return sum + static_cast<Accumulator>(a) * static_cast<Accumulator>(b);
    else  // wraps
      return static_cast<Accumulator>(static_cast<uint64>(sum) + static_cast<uint64>(a) * static_cast<uint64>(b));
  }

  // Where element i of thread `at` of kLanes lies in the warp's tile.
  template <bool kMnMajor, int kLanes>
  LATHE_DEVICE_MEMBER static int place(int at, int i) {
    return kMnMajor ? i / kVector * kLanes * kVector + at * kVector + i % kVector : i * kLanes + at;
  }

  template <class Panel, bool kMnMajor, int kLanes, int kCount>
  LATHE_DEVICE_MEMBER static void load_rows(T (&to)[kCount][kVector], const char* panel, int first, int at, int step) {
    if constexpr (kMnMajor) {
      LATHE_UNROLL
      for (int k = 0; k < kVector; ++k) LATHE_UNROLL
      for (int i = 0; i < kCount; i += kVector) {
        const int column = first + place<true, kLanes>(at, i);
        const Vector v = *reinterpret_cast<const Vector*>(panel + Panel::offset(step * kVector + k, column));
        LATHE_UNROLL
        for (int e = 0; e < kVector; ++e) to[i + e][k] = v.at[e];
      }
    } else {
      LATHE_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const int row = first + place<false, kLanes>(at, i);
        const Vector v = *reinterpret_cast<const Vector*>(panel + Panel::offset(row, step * kVector));
        LATHE_UNROLL
        for (int k = 0; k < kVector; ++k) to[i][k] = v.at[k];
      }
    }
  }
};

}  // namespace gemm
