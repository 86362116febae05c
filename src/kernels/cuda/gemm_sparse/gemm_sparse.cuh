// SPDX-License-Identifier: Apache-2.0
// The product of a panel and one of 2:4 sparse weights on tensor cores. The instruction takes sparse rows as its left
// operand, so it multiplies the columns of B, which are output channels, by the rows of A: sums are held transposed.
#pragma once

#include "gemm/gemm.cuh"

namespace gemm {

// Columns of B with half of their K, and behind them, for each 16 columns and step of K, the words that say which
// elements these are: in the order of the lanes that give them to the instruction.
template <class T, int kColumns, int kK>
struct SparsePanel {
  static constexpr int kStepK = 64 / static_cast<int>(sizeof(T));  // of an instruction
  static constexpr int kStepWords = sizeof(T) == 2 ? 16 : 32;      // lanes that say where elements lie
  static constexpr unsigned kFirstTwo = 0x44444444;                // of four are there: stored as 0
  using Values = Panel<T, kColumns, kK / 2>;
  using Places = Panel<uint32, kColumns / 16, kK / kStepK * kStepWords>;
  static constexpr int kBytes = Values::kBytes + Places::kBytes;
  static_assert(kColumns % 16 == 0 && kK % kStepK == 0, "whole instructions");
};

// As MmaTile; B's panel is sparse.
template <class T, int kM_, int kN_, int kK_, int kWarpM_, int kWarpN_, int kWarpsK_, int kStages_, bool kMnMajorA_>
struct SparseTile {
  using Element = T;
  using Accumulator = typename MatrixSum<T>::Type;
  static constexpr int kM = kM_, kN = kN_, kK = kK_, kWarpM = kWarpM_, kWarpN = kWarpN_, kStages = kStages_;
  static constexpr int kWarpsM = kM / kWarpM, kWarpsN = kN / kWarpN, kWarpsK = kWarpsK_;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN * kWarpsK;
  using PanelA = Panel<T, kMnMajorA_ ? kK : kM, kMnMajorA_ ? kM : kK>;
  using PanelB = SparsePanel<T, kN, kK>;
  static constexpr int kStepK = PanelB::kStepK;
  static constexpr int kSteps = kK / kStepK / kWarpsK;  // of a warp
  static constexpr bool kAsynchronous = false;
  static constexpr bool kAhead = kWarpM * kWarpN <= 2048 && kSteps % 2 == 0;  // else registers are for the sums
  static constexpr int kBuffers = kAhead ? 2 : 1;
  static constexpr int kRowTiles = kWarpM / 8, kColumnTiles = kWarpN / 16;
  static_assert(kM % kWarpM == 0 && kN % kWarpN == 0 && kWarpM % 16 == 0 && kWarpN % 16 == 0, "whole warp tiles");
  static_assert(kK % (kStepK * kWarpsK) == 0, "whole steps");
  static_assert(sizeof(T) == 2 || (sizeof(T) == 1 && !kMnMajorA_), "8-bit panels are K-major");

  struct Fragments {
    unsigned rows[kRowTiles][4];
    unsigned columns[kColumnTiles][4];
    unsigned places[kColumnTiles];
  };

  Accumulator acc[kColumnTiles][kRowTiles][4];

  LATHE_DEVICE_MEMBER void clear() { clear_sums(acc); }

  LATHE_DEVICE_MEMBER static int slice() { return kWarpsK == 1 ? 0 : warp() / (kWarpsM * kWarpsN); }  // of K
  LATHE_DEVICE_MEMBER static int warp_row() { return warp() / kWarpsN % kWarpsM * kWarpM; }
  LATHE_DEVICE_MEMBER static int warp_column() { return warp() % kWarpsN * kWarpN; }

  LATHE_DEVICE_MEMBER static void load(Fragments& f, const char* a, const char* b, int step) {
    using Values = typename PanelB::Values;
    step += slice() * kSteps;
    const int l = lane();
    LATHE_UNROLL
    for (int i = 0; i < kColumnTiles; ++i) {
      const char* panel = b + Values::chunk_offset(warp_column() + l % 16, step * 2 + l / 16);
      ldmatrix_x4(f.columns[i], panel + i * 16 * Values::kRowBytes);
      f.places[i] = places(b + Values::kBytes, warp_column() / 16 + i, step);
    }
    LATHE_UNROLL
    for (int j = 0; j < kRowTiles; ++j) load_rows(f.rows[j], a, warp_row() + j * 8, step);
  }

  LATHE_DEVICE_MEMBER void multiply(const Fragments& f) {
    LATHE_UNROLL
    for (int i = 0; i < kColumnTiles; ++i) LATHE_UNROLL
    for (int j = 0; j < kRowTiles; ++j) {
      const int row = i % 2 ? kRowTiles - 1 - j : j;  // back and forth: the last operand stays in its register
      mma_sparse(acc[i][row], f.columns[i], f.rows[row], f.places[i], T{});
    }
  }

  // Writes the sums of rows [first, first + rows) of the warp's tile.
  LATHE_DEVICE_MEMBER void stage(Accumulator* to, int pitch, int first, int rows) const {
    LATHE_UNROLL
    for (int j = 0; j < kRowTiles; ++j) {
      if (j * 8 < first || j * 8 >= first + rows) continue;
      Accumulator* row = to + (j * 8 - first + lane() % 4 * 2) * pitch;
      LATHE_UNROLL
      for (int i = 0; i < kColumnTiles; ++i) LATHE_UNROLL
      for (int e = 0; e < 4; ++e) row[e % 2 * pitch + staged_column(i * 16 + e / 2 * 8 + lane() / 4)] = acc[i][j][e];
    }
  }

 private:
  // Of 16-bit elements every other pair of lanes repeats what the pair before it has.
  LATHE_DEVICE_MEMBER static unsigned places(const char* panel, int columns, int step) {
    const int word = PanelB::kStepWords == 32 ? lane() : lane() / 4 * 2 + lane() % 2;
    panel += PanelB::Places::offset(columns, step * PanelB::kStepWords + word);
    return *reinterpret_cast<const unsigned*>(panel) ^ PanelB::kFirstTwo;
  }

  // Eight rows, one step of K.
  LATHE_DEVICE_MEMBER static void load_rows(unsigned (&r)[4], const char* panel, int row, int step) {
    if constexpr (kMnMajorA_)
      ldmatrix_x4_trans(r, panel + PanelA::chunk_offset(step * kStepK + lane(), row / 8));
    else
      ldmatrix_x4(r, panel + PanelA::chunk_offset(row + lane() % 8, step * 4 + lane() / 8));
  }
};

// Copies blocks of sparse weights into panels: both parts of them.
template <class Tile, bool kWholeColumns, bool kWholeK>
class SparseLoader {
 public:
  using Panel = typename Tile::PanelB;
  using T = typename Tile::Element;

  // `values` are a matrix of `columns` rows along K, `pitch` elements of each; `places` one of their words, a row for
  // each 16.
  LATHE_DEVICE_MEMBER void start(const T* values, const uint32* places, long pitch, long columns, const Block& block) {
    constexpr int kWords = Panel::kStepWords * 2;
    const long words = pitch * kWords / Panel::kStepK;
    values_.start(values, pitch, block.column, columns, block.k / 2, pitch);
    places_.start(places, words, block.column / 16, (columns + 15) / 16, block.k / Panel::kStepK * Panel::kStepWords,
                  words);
  }
  LATHE_DEVICE_MEMBER void fetch(char* panel, bool wanted) {
    values_.fetch(panel, wanted);
    places_.fetch(panel + Panel::Values::kBytes, wanted);
  }
  LATHE_DEVICE_MEMBER void place(char*) {}
  LATHE_DEVICE_MEMBER void finish(char*) {}

 private:
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
  DenseLoader<T, typename Panel::Values, Tile::kThreads, kWidth, false, kWholeColumns, kWholeK> values_;
  DenseLoader<uint32, typename Panel::Places, Tile::kThreads, 4, false, kWholeColumns, kWholeK> places_;
};

}  // namespace gemm
