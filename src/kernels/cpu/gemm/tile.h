// SPDX-License-Identifier: Apache-2.0
// The microkernel family under GEMM and convolution: sum over taps of A[rows, depth] x B[depth, columns], where each
// tap has its own A rows (any addresses) and B is a packed panel. Then the epilogue, while the tile is in registers.
#pragma once

#include <cstdint>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::gemm {

struct IntegerEpilogue;

// Of a matrix register; as many floats has each of its rows. A tile is two by two of them.
inline constexpr int kMatrixRegisterRows = 16;

// One run of `depth` consecutive k. Row r of A starts at a_rows[list * row_count + r] + a_offset + the tile's a_offset;
// B at b + k * b_stride. A tap of depth 0 is skipped.
struct Tap {
  int64_t a_offset;
  int64_t k;
  int32_t depth;
  int32_t list;
};

struct Tile {
  const float* const* a_rows;
  const Tap* taps;
  int64_t tap_count;
  int64_t a_offset;
  const float* b;    // the panel's first column of this tile
  int64_t b_stride;  // floats from one k to the next: the panel's width
  int columns;       // that exist; the rest of the tile's columns are padding
  int64_t column;    // the first one's index in the output
  float* partial;    // sums of the k blocks so far, [rows][partial_stride]
  int64_t partial_stride;
  bool load_partial;     // not the first k block
  bool store_partial;    // not the last k block
  const char* prefetch;  // weights to be read next, fetched into L2 along the way
  int prefetch_lines;    // per 4 k
  const BoundEpilogue* epilogue;
  const IntegerEpilogue* integers;  // of products of 8-bit integers, in place of `epilogue`
  const TileRows* where;
  int rows;
  int64_t b_rows;  // of the panel, from its first: where `b` may be read. Vectors' tiles do not look at it, nor at:
  // How the thread's matrix registers are set up (configure()); 0 = they are not.
  int* configured;
  int64_t a_distance;  // bytes from each row of A to the next; 0 = who sums is to look
  // Floats along K in a row of A's registers, and rows of B's: those of each tap, where rows are at `a_distance` and
  // no tap fills a register. 0 = registers are full, whatever taps they are of.
  int depth;
  int skipped;  // rows at the beginning that the tile before has finished; `where` begins behind them
  // A in blocks (gemm/pair_blocks.h), in place of a_rows; null = there are none. Taps then say where K begins and ends.
  const float* a_blocks;
  int height;                            // rows of a block
  int64_t block_group;                   // floats from a block to that of the next rows
  int64_t b_next = kMatrixRegisterRows;  // floats of a row of B from its first 16 columns to the next
};

using TileFunction = void (*)(const Tile& tile);

// How many rows a tile of 1 to 4 vectors may have where there are 16 vector registers, or 32: accumulators, B and one
// broadcast fit them, and the row pointers fit the general registers.
inline constexpr int kTileRows[2][4] = {{8, 6, 4, 2}, {12, 12, 9, 6}};

// The same of matrix registers.
inline constexpr int kMatrixTileRows[2] = {2 * kMatrixRegisterRows, 2 * kMatrixRegisterRows};

// The tiles of one ISA level: functions[vectors - 1][rows - 1].
inline constexpr int kMaxTileVectors = 4;
struct TileTable {
  int lanes;                      // floats in a vector
  int vectors;                    // the widest tile
  int max_rows[kMaxTileVectors];  // by vectors
  TileFunction functions[kMaxTileVectors][kMaxTileRows];
  bool has_equal_tiles;  // rows are cut into tiles of one size, the last of which takes some of the one before again
  void (*leave)();       // what a thread calls that has set `configured`; null where no tile does
  // Copies the taps of each of the tile's rows, none of them empty, one behind the other to rows that are `stride`
  // floats apart, with zeros up to the next 16: behind what does not fill the last 16, or, `zeros_first`, in front of
  // it. Null where tiles gain nothing.
  void (*gather)(const Tile& tile, float* to, int64_t stride, bool zeros_first);
};

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
LATHE_ISA_DECLARE(const gemm::TileTable& tile_table())
// Of products of bf16: each float of A and B is two of them (gemm/pairs.h).
LATHE_ISA_DECLARE(const gemm::TileTable& pair_tile_table(bool multiplies_bf16))
}  // namespace lathe::cpu
