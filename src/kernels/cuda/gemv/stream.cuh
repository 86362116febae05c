// SPDX-License-Identifier: Apache-2.0
// Products of few rows by weights that pass once from memory to registers, in 16-byte loads that leave the caches
// alone. A block has 16 columns; its warps take panels of 64 elements of K in turn. Weights do not depend on the launch
// before, so that those of each warp's first panels are read before it is waited for.
#pragma once

#include "gemv/rows.cuh"

namespace gemv {

// A block's columns of floats of 16 bits, packed as [column / 16][K / 64][4][lane][8]: what a lane multiplies in one
// step of 16 elements of K.
template <class T>
struct HalfColumns {
  static constexpr int kPanelBytes = 2048;
  struct Panel {
    Vec<uint32, 4> steps[4];
  };
  const T* own;

  LATHE_DEVICE_MEMBER HalfColumns(const T* weights, const gemm::Block& block, int k)
      : own(weights + (block.column / 16 * ((k + 63) / 64) + block.k / 64) * 1024) {}
  LATHE_DEVICE_MEMBER const void* codes(int panel) const { return own + panel * 1024L; }
  LATHE_DEVICE_MEMBER void fetch(Panel& to, int panel) const {
    LATHE_UNROLL
    for (int step = 0; step < 4; ++step)
      to.steps[step] =
          load_streaming(reinterpret_cast<const Vec<uint32, 4>*>(own + (panel * 4L + step) * 256 + lane() * 8));
  }
  // The left operand of a step: columns lane / 4 and 8 further at two elements of K, then at the next two.
  LATHE_DEVICE_MEMBER static void operand_of(unsigned (&a)[4], const Panel& panel, int step) {
    LATHE_UNROLL
    for (int i = 0; i < 4; ++i) a[i] = panel.steps[step].at[i];
  }
};

// The panels of a warp, of which kAhead are on the way: a power of two, or 1 where it has no second one.
template <class Columns, int kWarps, int kAhead>
struct Stream {
  using Panel = typename Columns::Panel;
  Columns columns;
  int first, count;
  Panel ahead[kAhead];

  // `cached` panels behind those that go to registers are brought to the last cache meanwhile.
  LATHE_DEVICE_MEMBER Stream(const Columns& of, const gemm::Block& block, int cached)
      : columns(of), first(static_cast<int>(block.k / 64)), count(block.blocks), ahead{} {
    LATHE_UNROLL
    for (int i = 0; i < kAhead; ++i)
      if (warp() + i * kWarps < count) columns.fetch(ahead[i], warp() + i * kWarps);
    constexpr int kFetched = kAhead * kWarps;
    const int more = cached < count - kFetched ? cached : count - kFetched;
    if (more > 0 && thread_x() == 0) prefetch_to_cache(columns.codes(kFetched), more * Columns::kPanelBytes);
  }

  LATHE_DEVICE_MEMBER int element_of(int panel) const { return (first + panel) * 64 + lane() % 4 * 16; }

  // For each panel use(slot, panel, its lane's first element of K), and load(slot, that element) while the panel before
  // is used: slots 0 and 1 in turns.
  template <class Load, class Use>
  LATHE_DEVICE_MEMBER void run(const Load& load, const Use& use) {
    if (warp() < count) load(0, element_of(warp()));
    for (int panel = warp(); panel < count; panel += kAhead * kWarps) {
      LATHE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int at = panel + i * kWarps, next = at + kAhead * kWarps;
        if (at >= count) break;
        if (at + kWarps < count) load((i + 1) % 2, element_of(at + kWarps));
        use(i % 2, ahead[i], element_of(at));
        if (next < count) columns.fetch(ahead[i], next);
      }
    }
  }
};

// On tensor cores, the weights as left operand: 16 columns of the product by 8 * kTiles rows.
template <class Columns, class T, int kWarps, int kTiles, int kAhead, class Reader>
struct StreamTile {
  static constexpr int kM = 8 * kTiles, kN = 16, kK = 64;
  static constexpr int kThreads = 32 * kWarps;

  float sums[kTiles][4];

  LATHE_DEVICE_MEMBER void run(const Columns& columns, const Rows<T>& rows, const gemm::Block& block, int cached) {
    Stream<Columns, kWarps, kAhead> stream(columns, block, cached);
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) sums[j][e] = 0;
    dependency_wait();
    Reader reader;
    reader.start(rows, block);
    unsigned ahead[2][8];  // of one tile of rows; more are read as they are multiplied
    const auto load = [&](int slot, int at) {
      if constexpr (kTiles == 1) reader.load(ahead[slot], lane() / 4, at);
    };
    stream.run(load, [&](int slot, const typename Columns::Panel& panel, int at) {
      unsigned weights[4][4], row[8];
      LATHE_UNROLL
      for (int step = 0; step < 4; ++step) columns.operand_of(weights[step], panel, step);
      LATHE_UNROLL
      for (int j = 0; j < kTiles; ++j) {
        if constexpr (kTiles > 1) reader.load(row, j * 8 + lane() / 4, at);
        const unsigned(&from)[8] = kTiles > 1 ? row : ahead[slot];
        LATHE_UNROLL
        for (int step = 0; step < 4; ++step) {
          const unsigned pair[2] = {from[step * 2], from[step * 2 + 1]};
          mma_m16n8k16(sums[j], weights[step], pair, T{});
        }
      }
    });
  }

  // [row][column], kM x kN.
  LATHE_DEVICE_MEMBER void stage(float* to) const {
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) to[(j * 8 + lane() % 4 * 2 + e % 2) * kN + lane() / 4 + e / 2 * 8] = sums[j][e];
  }
};

}  // namespace gemv
