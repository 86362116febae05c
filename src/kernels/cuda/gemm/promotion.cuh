// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit floats by four warps: Hopper's matrix units keep about 14 bits of their sums. So each panel, 128
// elements of K, is summed up by itself, and added to sums in f32 (docs/decisions/0071).
#pragma once

#include "lib/warpgroup.cuh"

namespace gemm {

template <class T>
inline constexpr bool kPromotes = is_float8<T>;

// The sums of one panel, where they are kept apart.
template <class T, int kN>
struct PanelSums {
  float part[kN / 8][4];

  // Begins the product of one step of K, the first of a panel or another.
  LATHE_DEVICE_MEMBER void multiply(const char* a, const char* b, bool first) {
    constexpr bool kKeep = true;
    if (first)
      wgmma_along_k<kN, !kKeep>(part, a, b, T{});
    else
      wgmma_along_k<kN, kKeep>(part, a, b, T{});
  }

  // Once the panel's products have been waited for.
  template <class Sums>
  LATHE_DEVICE_MEMBER void add_to(Sums& sums) {
    pin_sums(part);
    LATHE_UNROLL
    for (int j = 0; j < kN / 8; ++j) LATHE_UNROLL
    for (int i = 0; i < 4; ++i) sums[j][i] += part[j][i];
  }
};

// Waits until kPending panels at most are still multiplied; of 8-bit floats, for all, and adds them to the tile's sums.
template <int kPending, class Tile>
LATHE_DEVICE void wait_for_panels(Tile& tile) {
  if constexpr (kPromotes<typename Tile::Element>) {
    tile.prepare_panel();
    wgmma_wait<0>();
    tile.add_panel();
  } else {
    wgmma_wait<kPending>();
  }
}

// Of other types there are none: products are added to a tile's sums.
struct NoPanelSums {};

template <class T, int kN, bool kApart = kPromotes<T>>
struct PanelSumsOf {
  using Type = NoPanelSums;
};
template <class T, int kN>
struct PanelSumsOf<T, kN, true> {
  using Type = PanelSums<T, kN>;
};

}  // namespace gemm
