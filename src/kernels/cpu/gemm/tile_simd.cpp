// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/tile.h"

#include <utility>

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using gemm::Tap;
using gemm::Tile;
using gemm::TileFunction;
using gemm::TileTable;

// sums + the products of each lane. What a few bytes of code for each tile are worth is finished in registers.
struct FloatProducts {
  static constexpr bool kFinishes = true;
  static constexpr int max_rows(int vectors) { return gemm::kTileRows[kVecRegisters == 32][vectors - 1]; }
  LATHE_INLINE static Vec add(Vec sums, Vec a, Vec b) { return mul_add(a, b, sums); }
};

#if defined(LATHE_ISA_LEVEL_avx512)
// Of pairs of bf16, with the CPU's instruction for it. It is written out, for the flags of the level do not include it;
// see multiplies_bf16().
struct PairProducts {
  static constexpr bool kFinishes = false;
  // Enough sums to keep the core busy.
  static constexpr int max_rows(int vectors) { return vectors > 2 ? 4 : 6; }
  LATHE_INLINE static Vec add(Vec sums, Vec a, Vec b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
    return sums;
  }
};
#endif

// The same by products of f32. Plans that were built for other CPUs alone have such products: few tiles will do.
struct SplitPairProducts {
  static constexpr bool kFinishes = false;
  static constexpr int max_rows(int) { return 2; }
  LATHE_INLINE static Vec add(Vec sums, Vec a, Vec b) {
    return mul_add(high(a), high(b), mul_add(low(a), low(b), sums));
  }
  LATHE_INLINE static Vec low(Vec pairs) { return as_float(as_int(pairs) << 16); }
  LATHE_INLINE static Vec high(Vec pairs) { return as_float(as_int(pairs) & static_cast<int32_t>(0xffff0000u)); }
};

// The widest tile: always a divisor of 16 columns on narrow machines, so that it divides every panel width.
constexpr int kVectors = kVecBytes == 64 || kVecRegisters == 32 ? 4 : 2;

template <class Products, int kRows, int kCols>
LATHE_INLINE void multiply_step(Vec (&sums)[kRows][kCols], const float* const (&a)[kRows], int64_t k, const float* b) {
  Vec columns[kCols];
  LATHE_UNROLL
  for (int v = 0; v < kCols; ++v) columns[v] = load(b + v * kLanes);
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const Vec row = broadcast(a[r][k]);
    LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) sums[r][v] = Products::add(sums[r][v], row, columns[v]);
  }
}

template <class Products, int kRows, int kCols>
LATHE_INLINE void multiply(Vec (&sums)[kRows][kCols], const Tile& tile) {
  const int64_t b_stride = tile.b_stride;
  const char* prefetched = tile.prefetch;
  const int lines = tile.prefetch_lines;
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
    for (; k + 4 <= depth; k += 4) {
      for (int i = 0; i < lines; ++i, prefetched += 64) prefetch_l2(prefetched);
      LATHE_UNROLL
      for (int u = 0; u < 4; ++u, b += b_stride) multiply_step<Products, kRows, kCols>(sums, a, k + u, b);
    }
    for (; k < depth; ++k, b += b_stride) multiply_step<Products, kRows, kCols>(sums, a, k, b);
  }
}

// The lines that finishing the tile will touch are fetched while it is being summed.
template <int kRows, int kCols>
LATHE_INLINE void prefetch_output(const Tile& tile) {
  const TileRows& where = *tile.where;
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kCols * kLanes; c += 16) __builtin_prefetch(where.out[r] + tile.column + c, 1, 3);
  const int residual = tile.epilogue->residual;
  if (residual < 0) return;
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kCols * kLanes; c += 16) prefetch(where.operand[residual][r] + tile.column + c);
}

// clip(sums + bias + residual), straight from registers to the output.
template <int kRows, int kCols>
LATHE_INLINE void finish_linear(Vec (&sums)[kRows][kCols], const Tile& tile) {
  const BoundEpilogue& epilogue = *tile.epilogue;
  const Vec low = broadcast(epilogue.low), high = broadcast(epilogue.high);
  if (epilogue.bias) {
    LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) {
      const Vec bias = load(epilogue.bias + tile.column + v * kLanes);
      LATHE_UNROLL
      for (int r = 0; r < kRows; ++r) sums[r][v] += bias;
    }
  }
  if (epilogue.residual >= 0) {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float* residual = tile.where->operand[epilogue.residual][r] + tile.column;
      LATHE_UNROLL
      for (int v = 0; v < kCols; ++v) sums[r][v] += load(residual + v * kLanes);
    }
  }
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float* out = tile.where->out[r] + tile.column;
    LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) store(out + v * kLanes, min_or_second(high, max_or_second(low, sums[r][v])));
  }
}

template <class Products, int kRows, int kCols>
void run_tile(const Tile& tile) {
  Vec sums[kRows][kCols];
  if (tile.load_partial) {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) sums[r][v] = load(tile.partial + r * tile.partial_stride + v * kLanes);
  } else {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) sums[r][v] = zero();
  }
  if (!tile.store_partial) prefetch_output<kRows, kCols>(tile);
  multiply<Products, kRows, kCols>(sums, tile);
  if constexpr (Products::kFinishes)
    if (!tile.store_partial && tile.epilogue->linear && tile.columns == kCols * kLanes)
      return finish_linear<kRows, kCols>(sums, tile);
  alignas(kVecBytes) float scratch[kRows * kCols * kLanes];
  float* const to = tile.store_partial ? tile.partial : scratch;
  const int64_t stride = tile.store_partial ? tile.partial_stride : kCols * kLanes;
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r) LATHE_UNROLL
  for (int v = 0; v < kCols; ++v) store(to + r * stride + v * kLanes, sums[r][v]);
  if (!tile.store_partial)
    finish_tile(*tile.epilogue, *tile.where, scratch, kCols * kLanes, kRows, tile.column, tile.columns);
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

const TileTable& tile_table() {
  static const TileTable table = make_table<FloatProducts>(std::make_integer_sequence<int, kVectors>());
  return table;
}

const TileTable& pair_tile_table([[maybe_unused]] bool multiplies_bf16) {
#if defined(LATHE_ISA_LEVEL_avx512)
  static const TileTable pairs = make_table<PairProducts>(std::make_integer_sequence<int, kVectors>());
  if (multiplies_bf16) return pairs;
#endif
  static const TileTable split = make_table<SplitPairProducts>(std::make_integer_sequence<int, kVectors>());
  return split;
}

}  // namespace lathe::cpu::LATHE_ISA
