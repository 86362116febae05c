// SPDX-License-Identifier: Apache-2.0
// Tiles of products of 8-bit integers. Each float of A is four u8 along k, each float of B the four i8 that they are
// multiplied by.
#include <utility>

#include "kernels/cpu/gemm/folded_levels.h"
#include "kernels/cpu/gemm/integer_products.h"
#include "kernels/cpu/gemm/tile.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using gemm::Tap;
using gemm::Tile;
using gemm::TileTable;

// As of products of floats, so that every panel width is a multiple of a tile's or less.
constexpr int kVectors = kVecBytes == 64 || kVecRegisters == 32 ? 4 : 2;

template <class Products, int kRows, int kCols>
LATHE_INLINE void multiply_step(IntVec (&sums)[kRows][kCols], const float* const (&a)[kRows], int64_t k, const float* b,
                                IntVec flip) {
  IntVec columns[kCols];
  LATHE_UNROLL
  for (int v = 0; v < kCols; ++v) columns[v] = as_int(load(b + v * kLanes));
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    int32_t four;
    std::memcpy(&four, a[r] + k, sizeof(four));
    const IntVec row = broadcast_int(four) ^ flip;
    LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) sums[r][v] = Products::add(sums[r][v], row, columns[v]);
  }
}

template <class Products, bool kFlips, int kRows, int kCols>
LATHE_INLINE void multiply(IntVec (&sums)[kRows][kCols], const Tile& tile) {
  const int64_t b_stride = tile.b_stride;
  const char* prefetched = tile.prefetch;
  const int lines = tile.prefetch_lines;
  const IntVec flip = kFlips ? broadcast_int(tile.integers->flip) : IntVec{};
  for (const Tap *tap = tile.taps, *end = tap + tile.tap_count; tap < end; ++tap) {
    const int64_t depth = tap->depth;
    if (depth == 0) continue;  // its rows are not listed
    const float* const* rows = tile.a_rows + tap->list * kRows;
    const int64_t offset = tap->a_offset + tile.a_offset;
    const float* a[kRows];
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) a[r] = rows[r] + offset;
    const float* b = tile.b + tap->k * b_stride;
    int64_t k = 0;
    for (; Products::kUnrolled && k + 4 <= depth; k += 4) {
      for (int i = 0; i < lines; ++i, prefetched += 64) prefetch_l2(prefetched);
      LATHE_UNROLL
      for (int u = 0; u < 4; ++u, b += b_stride) multiply_step<Products, kRows, kCols>(sums, a, k + u, b, flip);
    }
    for (; k < depth; ++k, b += b_stride) {
      for (int i = 0; !Products::kUnrolled && k % 4 == 3 && i < lines; ++i, prefetched += 64) prefetch_l2(prefetched);
      multiply_step<Products, kRows, kCols>(sums, a, k, b, flip);
    }
  }
}

// What the rows' sums lack (see row_factor), from these taps.
template <class Products>
void sum_rows(const Tile& tile, int rows, int32_t* sums) {
  const IntVec flip = broadcast_int(tile.integers->flip), ones = broadcast_int(0x01010101);
  for (int r = 0; r < rows; ++r) {
    IntVec total{};
    for (const Tap *tap = tile.taps, *end = tap + tile.tap_count; tap < end; ++tap) {
      if (tap->depth == 0) continue;
      const float* a = tile.a_rows[tap->list * rows + r] + tap->a_offset + tile.a_offset;
      for (int64_t k = 0; k < tap->depth; k += kLanes) {
        const int64_t rest = tap->depth - k;
        IntVec fours{};
        std::memcpy(&fours, a + k, static_cast<size_t>(rest < kLanes ? rest : kLanes) * sizeof(int32_t));
        total = Products::add(total, fours ^ flip, rest < kLanes ? ones & (iota() < static_cast<int>(rest)) : ones);
      }
    }
    uint32_t sum = 0;
    for (int i = 0; i < kLanes; ++i) sum += static_cast<uint32_t>(total[i]);
    sums[r] = static_cast<int32_t>(sum * static_cast<uint32_t>(tile.integers->row_factor));
  }
}

// Sums become levels, and are not stored between. Column by column, for each has factors of its own.
template <Between kBetween, class T, int kRows, int kCols>
LATHE_INLINE void finish_in_registers(IntVec (&sums)[kRows][kCols], const Tile& tile) {
  const gemm::IntegerEpilogue& integers = *tile.integers;
  const FoldedLevels<kBetween, T> level(integers.folded);
  LATHE_UNROLL
  for (int v = 0; v < kCols; ++v) {
    const int64_t column = tile.column + v * kLanes;
    const Vec scale = load(integers.scale + column), offset = load(integers.folded.offset + column);
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r)
      sums[r][v] = level(sums[r][v], scale, offset, residuals_at<T>(integers, *tile.where, r, column), kLanes);
  }
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    IntVec levels[4] = {};
    LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) levels[v] = sums[r][v];
    store_packed(reinterpret_cast<std::byte*>(tile.where->out[r]) + tile.column, levels, tile.columns, level.packing);
  }
}

// The usual epilogues, where there is a function for the tile; false for others. Residuals are those of whole tiles
// that networks have: of u8, added behind levels.
template <int kRows, int kCols>
LATHE_INLINE bool try_in_registers(IntVec (&sums)[kRows][kCols], const Tile& tile) {
  const gemm::IntegerEpilogue& integers = *tile.integers;
  if (!integers.folded.offset || tile.store_partial || integers.term >= 0) return false;
  if (integers.residual < 0 && !integers.has_between) {
    finish_in_registers<Between::none, void>(sums, tile);
    return true;
  }
  if constexpr (kCols == kVectors) {
    const bool is_usual = integers.residual >= 0 && integers.has_between &&
                          integers.program->operand_types[static_cast<size_t>(integers.residual)] == DType::u8;
    if (!is_usual || tile.columns != kCols * kLanes) return false;
    if (integers.folded.divides)
      finish_in_registers<Between::divided, uint8_t>(sums, tile);
    else
      finish_in_registers<Between::folded, uint8_t>(sums, tile);
    return true;
  }
  return false;
}

template <class Products, int kRows, int kCols>
void run_tile(const Tile& tile) {
  IntVec sums[kRows][kCols];
  auto* partial = reinterpret_cast<int32_t*>(tile.partial);
  if (tile.load_partial) {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) sums[r][v] = load_int(partial + r * tile.partial_stride + v * kLanes);
  } else {
    LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) {
      const IntVec start = IntVec{} - load_int(tile.integers->zero + tile.column + v * kLanes);
      LATHE_UNROLL
      for (int r = 0; r < kRows; ++r) sums[r][v] = start;
    }
  }
  if (tile.integers->row_factor) {
    int32_t missing[kRows];
    sum_rows<Products>(tile, kRows, missing);
    LATHE_UNROLL  // else the sums lie in memory
        for (int r = 0; r < kRows; ++r) LATHE_UNROLL for (int v = 0; v < kCols; ++v) sums[r][v] += missing[r];
  }
  if (!Products::kUnrolled || tile.integers->flip)
    multiply<Products, true>(sums, tile);
  else
    multiply<Products, false>(sums, tile);
  if constexpr (Products::kUnrolled)
    if (try_in_registers(sums, tile)) return;
  alignas(64) int32_t scratch[kRows * kCols * kLanes];
  const int64_t stride = tile.store_partial ? tile.partial_stride : kCols * kLanes;
  int32_t* to = tile.store_partial ? partial : scratch;
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r) LATHE_UNROLL
  for (int v = 0; v < kCols; ++v) store_int(to + r * stride + v * kLanes, sums[r][v]);
  if (!tile.store_partial)
    finish_integers(*tile.integers, *tile.where, scratch, stride, kRows, tile.column, tile.columns);
}

template <class Products, int kCols, int... kRow>
void fill(TileTable& table, std::integer_sequence<int, kRow...>) {
  table.max_rows[kCols - 1] = sizeof...(kRow);
  ((table.functions[kCols - 1][kRow] = run_tile<Products, kRow + 1, kCols>), ...);
}

template <class Products, int... kCol>
TileTable make_table(std::integer_sequence<int, kCol...>) {
  TileTable table{};
  table.lanes = kLanes;
  table.vectors = sizeof...(kCol);
  (fill<Products, kCol + 1>(table, std::make_integer_sequence<int, Products::max_rows(kCol + 1)>()), ...);
  return table;
}

}  // namespace

const TileTable& integer_tile_table(bool multiplies_bytes) {
  static const TileTable shorts = make_table<ShortProducts>(std::make_integer_sequence<int, kVectors>());
#if defined(LATHE_ISA_LEVEL_avx512) || defined(LATHE_ISA_LEVEL_avx2)
  static const TileTable bytes = make_table<ByteProducts>(std::make_integer_sequence<int, kVectors>());
  if (multiplies_bytes) return bytes;
#endif
  return shorts;
}

}  // namespace lathe::cpu::LATHE_ISA
