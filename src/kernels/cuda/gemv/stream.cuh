// SPDX-License-Identifier: Apache-2.0
// Products of few rows by weights that pass once from memory to registers, in 16-byte loads that leave the caches
// alone. Slices of 16 columns belong to kWarps warps each, which take panels of 64 elements of K in turn; a block has
// kGroups slices. Weights do not depend on the launch before, so that those of each warp's first panels are read before
// it is waited for.
#pragma once

#include "gemv/rows.cuh"

namespace gemv {

// A slice of floats of 16 bits from a panel of K on, packed as [column / 16][K / 64][4][lane][8]: what a lane
// multiplies in one step of 16 elements of K.
template <class T, int kK>
struct HalfColumns {
  using Weights = const T*;
  static constexpr int kPanelBytes = 2048;
  struct Panel {
    Vec<uint32, 4> steps[4];
  };
  const T* own;

  LATHE_DEVICE_MEMBER HalfColumns(const T* weights, long column, int first)
      : own(weights + (column / 16 * ((kK + 63) / 64) + first) * 1024) {}
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

// The panels of a warp, of which kAhead are on the way: a power of two, or 1 where it has no second one. kOwn is how
// many it has, where that is known and the same for all; else 0.
template <class Columns, int kWarps, int kAhead, int kOwn>
struct Stream {
  // Then no panel but those of the last round has to be asked for.
  static constexpr bool kEven = kOwn > 0 && kOwn % kAhead == 0;
  using Panel = typename Columns::Panel;
  Columns columns;
  int first, own;
  Panel ahead[kAhead];

  // `cached` panels of each slice behind those that go to registers are brought to the last cache meanwhile.
  LATHE_DEVICE_MEMBER Stream(typename Columns::Weights weights, long column, const gemm::Block& block, int cached)
      : columns(weights, column, static_cast<int>(block.k / 64) + share()),
        first(static_cast<int>(block.k / 64) + share()),
        own(kOwn > 0 ? kOwn : (block.blocks - share() + kWarps - 1) / kWarps),
        ahead{} {
    let_next_begin();
    LATHE_UNROLL
    for (int i = 0; i < kAhead; ++i)
      if (kEven || i < own) columns.fetch(ahead[i], i * kWarps);
    constexpr int kFetched = kAhead * kWarps;
    const int more = cached < block.blocks - kFetched ? cached : block.blocks - kFetched;
    if (more > 0 && share() == 0 && lane() == 0)
      prefetch_to_cache(columns.codes(kFetched), more * Columns::kPanelBytes);
  }

  LATHE_DEVICE_MEMBER static int share() { return kWarps == 1 ? 0 : warp() % kWarps; }
  LATHE_DEVICE_MEMBER int element_of(int turn) const { return (first + turn * kWarps) * 64 + lane() % 4 * 16; }

  // For each panel use(slot, panel, its lane's first element of K), and load(slot, that element) while the panel before
  // is used: slots 0 and 1 in turns.
  template <class Load, class Use>
  LATHE_DEVICE_MEMBER void run(const Load& load, const Use& use) {
    if (kEven || own > 0) load(0, element_of(0));
    LATHE_NO_UNROLL
    for (int turn = 0; turn < own; turn += kAhead) {
      const int rest = own - turn;
      LATHE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        if (!kEven && i >= rest) break;
        if ((kEven && i + 1 < kAhead) || i + 1 < rest) load((i + 1) % 2, element_of(turn + i + 1));
        use(i % 2, ahead[i], element_of(turn + i));
        if (kEven ? kAhead < rest : i + kAhead < rest) columns.fetch(ahead[i], (turn + i + kAhead) * kWarps);
      }
    }
  }
};

// On tensor cores, the weights as left operand: columns of the product by 8 * kTiles rows.
template <class Columns, class T, int kWarps, int kGroups, int kTiles, int kAhead, int kOwn, class Reader>
struct StreamTile {
  static constexpr int kSlice = 16, kM = 8 * kTiles, kN = kSlice * kGroups, kK = 64;
  static constexpr int kThreads = 32 * kWarps * kGroups;

  float sums[kTiles][4];

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) sums[j][e] = 0;
  }

  LATHE_DEVICE_MEMBER void run(typename Columns::Weights weights, const typename Reader::Source& rows,
                               const gemm::Block& block, long n, int cached) {
    long column = block.column + warp() / kWarps * kSlice;
    if (kGroups > 1 && column >= n) column = block.column;  // whose sums nobody stores
    Reader reader;
    reader.prepare(rows, block);
    Stream<Columns, kWarps, kAhead, kOwn> stream(weights, column, block, cached);
    clear();
    dependency_wait();
    reader.start(rows, block);
    unsigned ahead[2][8] = {};  // of one tile of rows; more are read as they are multiplied
    const auto load = [&](int slot, int at) {
      if constexpr (kTiles == 1) reader.load(ahead[slot], lane() / 4, at);
    };
    stream.run(load, [&](int slot, const typename Columns::Panel& panel, int at) {
      unsigned left[4][4];
      LATHE_UNROLL
      for (int step = 0; step < 4; ++step) Columns::operand_of(left[step], panel, step);
      LATHE_UNROLL
      for (int j = 0; j < kTiles; ++j) {
        unsigned row[8] = {};
        if constexpr (kTiles > 1) reader.load(row, j * 8 + lane() / 4, at);
        const unsigned(&from)[8] = kTiles > 1 ? row : ahead[slot];
        LATHE_UNROLL
        for (int step = 0; step < 4; ++step) {
          const unsigned pair[2] = {from[step * 2], from[step * 2 + 1]};
          mma_m16n8k16(sums[j], left[step], pair, T{});
        }
      }
    });
  }

  // [row][column of the slice].
  LATHE_DEVICE_MEMBER void stage(float* to) const {
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) to[(j * 8 + lane() % 4 * 2 + e % 2) * kSlice + lane() / 4 + e / 2 * 8] = sums[j][e];
  }
};

}  // namespace gemv
