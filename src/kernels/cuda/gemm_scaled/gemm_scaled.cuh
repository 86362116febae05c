// SPDX-License-Identifier: Apache-2.0
// Tiles of products of 8-bit floats with scales by blocks of K: sums of one instruction, or of a panel, are multiplied
// by the scales of their row and column as they are added to a tile's sums in f32 (docs/decisions/0115).
#pragma once

#include "gemm/gemm.cuh"

namespace gemm {

// kRows: each row has a scale for each kBlock elements of K. kColumns neighbours of the columns share one; 0 = they
// have none.
template <int kBlock_, int kColumns_, bool kRows_>
struct BlockScales {
  static constexpr int kBlock = kBlock_, kColumns = kColumns_;
  static constexpr bool kRows = kRows_;
  const float* rows;
  long row, row_block;  // from one to the next, from one block to the next
  const float* columns;
  long column, column_block;
  long m, n, k;
};

// Where the scales of a row, and of a block of columns, are for the block of K that element k is of. What is beyond the
// last has those of the last: it is 0, or not stored.
template <class Scales>
LATHE_DEVICE long block_of_k(const Scales& scales, long k) {
  return min_of((scales.k - 1) / Scales::kBlock, static_cast<int>(k / Scales::kBlock));
}
template <class Scales>
LATHE_DEVICE const float* row_scale(const Scales& scales, long row, long block) {
  return scales.rows + min_of(scales.m - 1, static_cast<int>(row)) * scales.row + block * scales.row_block;
}
template <class Scales>
LATHE_DEVICE const float* column_scale(const Scales& scales, long column, long block) {
  const long at = min_of((scales.n - 1) / Scales::kColumns, static_cast<int>(column));
  return scales.columns + at * scales.column + block * scales.column_block;
}

// The scales of a thread's sums for one block of K. It has rows 16 * i + 8 * h and columns 8 * j + e, from its first
// on, all of which share scales, or none.
template <class Scales, int kRowTiles, int kColumnTiles>
struct ThreadScales {
  static constexpr bool kOwn = Scales::kColumns == 1;
  Scales scales;
  long row, column, k;  // the first; of K what is added next
  long block;           // that `of_rows` and `of_columns` are of
  bool is_first;        // they are not there yet: other launches may still write them
  float of_rows[kRowTiles][2], of_columns[kOwn ? 2 * kColumnTiles : 1];

  LATHE_DEVICE_MEMBER void start(const Scales& all, long first_row, long first_column, long first_k) {
    scales = all;
    row = first_row, column = first_column, k = first_k;
    is_first = true;
  }
  LATHE_DEVICE_MEMBER void prepare() {
    if (is_first) load();
    is_first = false;
  }
  LATHE_DEVICE_MEMBER void advance(int elements) {
    k += elements;
    if (k / Scales::kBlock != block) load();
  }
  LATHE_DEVICE_MEMBER float of(int i, int h, int j, int e) const {
    if constexpr (Scales::kColumns == 0) return of_rows[i][h];
    return of_rows[i][h] * of_columns[kOwn ? 2 * j + e : 0];
  }

 private:
  LATHE_DEVICE_MEMBER void load() {
    block = k / Scales::kBlock;
    const long at = block_of_k(scales, k);
    LATHE_UNROLL
    for (int i = 0; i < kRowTiles; ++i) LATHE_UNROLL
    for (int h = 0; h < 2; ++h) of_rows[i][h] = Scales::kRows ? *row_scale(scales, row + i * 16 + h * 8, at) : 1.0f;
    if constexpr (kOwn) {
      LATHE_UNROLL
      for (int j = 0; j < 2 * kColumnTiles; ++j) of_columns[j] = *column_scale(scales, column + j / 2 * 8 + j % 2, at);
    } else if constexpr (Scales::kColumns > 0) {
      of_columns[0] = *column_scale(scales, column / Scales::kColumns, at);
    }
  }
};

// A tile of mma.sync, each of which is of one block.
template <class Base, class Scales>
struct ScaledMmaTile : Base {
  using T = typename Base::Element;
  ThreadScales<Scales, Base::kRowTiles, Base::kColumnTiles> scales;
  int step;  // of a panel
  static_assert(Scales::kBlock % Base::kStepK == 0, "an instruction's products have the same scales");
  static_assert(Scales::kColumns <= 1 || (Scales::kColumns % 128 == 0 && 128 % Base::kWarpN == 0),
                "a warp's columns are of one block");

  LATHE_DEVICE_MEMBER void begin(const Scales& all, const Block& block) {
    scales.start(all, block.row + Base::warp_row() + lane() / 4, block.column + Base::warp_column() + lane() % 4 * 2,
                 block.k + Base::slice() * Base::kSteps * Base::kStepK);
    step = 0;
  }

  LATHE_DEVICE_MEMBER void multiply(const typename Base::Fragments& f) {
    scales.prepare();
    LATHE_UNROLL
    for (int i = 0; i < Base::kRowTiles; ++i) LATHE_UNROLL
    for (int j = 0; j < Base::kColumnTiles; ++j) {
      const int column = i % 2 ? Base::kColumnTiles - 1 - j : j;
      float part[4] = {};
      mma_m16n8k32(part, f.a[i], f.b[column], T{});
      LATHE_UNROLL
      for (int e = 0; e < 4; ++e) Base::acc[i][column][e] += part[e] * scales.of(i, e / 2, column, e % 2);
    }
    const bool is_last = ++step == Base::kSteps;
    if (is_last) step = 0;
    scales.advance(is_last ? Base::kK - (Base::kSteps - 1) * Base::kStepK : Base::kStepK);
  }
};

// The scales of panels, which each warp copies to a ring of its own some panels ahead: of its 16 rows, then of the
// tile's columns, or of the two blocks of columns that a tile reaches into. The host counts its bytes, too
// (scales_bytes() in tile_tactic.cpp).
template <class Scales, int kN, int kPanel>
struct PanelScales {
  static constexpr bool kOwn = Scales::kColumns == 1;
  static constexpr int kSlots = 4, kRows = 16, kSlot = kRows + (kOwn ? kN : 2);
  static_assert(Scales::kBlock % kPanel == 0, "a panel's products have the same scales");
  Scales scales;
  float* ring;
  const float* from;  // the scale of this lane's row, or block of columns, for the first block of K; null = none
  long step;          // from one block of K to the next
  long column, k;     // the first
  int panels, asked;
  float of_rows[2];
  float of_columns[kOwn ? kN / 4 : 2];

  LATHE_DEVICE_MEMBER void start(const Scales& all, const Block& block, int warp_row, char* shared) {
    scales = all;
    ring = reinterpret_cast<float*>(shared) + warp() * kSlots * kSlot;
    column = block.column, k = block.k;
    panels = block.blocks, asked = 0;
    find_source(block.row + warp_row);
    warp_barrier();  // the ring has been read
    for (int i = 1; i < kSlots; ++i) ask();
  }

  // To registers, those of the next panel.
  LATHE_DEVICE_MEMBER void take() {
    copy_async_wait<kSlots - 2>();
    warp_barrier();
    const float* slot = ring + (asked + 1) % kSlots * kSlot;
    LATHE_UNROLL
    for (int h = 0; h < 2; ++h) of_rows[h] = Scales::kRows ? slot[lane() / 4 + 8 * h] : 1.0f;
    LATHE_UNROLL
    for (int j = 0; Scales::kColumns > 0 && j < (kOwn ? kN / 4 : 2); ++j)
      of_columns[j] = slot[kRows + (kOwn ? j / 2 * 8 + lane() % 4 * 2 + j % 2 : j)];
    ask();
  }

  LATHE_DEVICE_MEMBER float of(int h, int j, int e, int split) const {
    if constexpr (Scales::kColumns == 0) return of_rows[h];
    return of_rows[h] * of_columns[kOwn ? 2 * j + e : 8 * j < split ? 0 : 1];
  }

 private:
  LATHE_DEVICE_MEMBER void find_source(long row) {
    const int block = lane() - kRows;  // of columns
    from = nullptr, step = 0;
    if (Scales::kRows && block < 0) from = row_scale(scales, row + lane(), 0), step = scales.row_block;
    if constexpr (Scales::kColumns > 1)
      if (block == 0 || block == 1)
        from = column_scale(scales, column / Scales::kColumns + block, 0), step = scales.column_block;
  }

  LATHE_DEVICE_MEMBER void ask() {
    if (asked < panels) {
      float* slot = ring + asked % kSlots * kSlot;
      const long at = block_of_k(scales, k + static_cast<long>(asked) * kPanel);
      if (from) copy_async4(slot + lane(), from + at * step, 4);
      if constexpr (kOwn) {
        LATHE_UNROLL
        for (int i = 0; i < kN; i += 32)
          copy_async4(slot + kRows + i + lane(), column_scale(scales, column + i + lane(), at), 4);
      }
    }
    ++asked;
    copy_async_commit();
  }
};

// A tile of a pipeline, whose panels are of one block each.
template <class Base, class Scales>
struct ScaledPanelTile : Base {
  static constexpr int kColumnTiles = Base::kPartN / 8, kWhole = Base::kN;
  PanelScales<Scales, Base::kN, Base::kK> scales;
  int split;  // columns of the tile that are of its first block of columns
  static_assert(Scales::kColumns <= 1 ||
                    (Scales::kColumns % 128 == 0 && (128 % kWhole == 0 || kWhole == 192 || kWhole == 256)),
                "add_panel() knows the splits");

  // `block.row` is that of the group of warps.
  LATHE_DEVICE_MEMBER void begin(const Scales& all, const Block& block, char* shared) {
    scales.start(all, block, Base::Sums::warp_row(), shared);
    split = kWhole;
    if constexpr (Scales::kColumns > 1) split = Scales::kColumns - static_cast<int>(block.column % Scales::kColumns);
  }

  LATHE_DEVICE_MEMBER void prepare_panel() { scales.take(); }

  LATHE_DEVICE_MEMBER void add_panel(int part) {
    pin_sums(Base::panel.part);
    if (kWhole <= 128 || split >= kWhole)
      add<kWhole>(part);
    else if (split == 64)
      add<64>(part);
    else
      add<128>(part);
  }

 private:
  template <int kSplit>
  LATHE_DEVICE_MEMBER void add(int part) {
    const int first = part * kColumnTiles;
    LATHE_UNROLL
    for (int j = 0; j < kColumnTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e)
      Base::sums[part].acc[0][j][e] += Base::panel.part[j][e] * scales.of(e / 2, first + j, e % 2, kSplit);
  }
};

}  // namespace gemm
