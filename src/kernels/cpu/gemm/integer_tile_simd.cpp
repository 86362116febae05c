// SPDX-License-Identifier: Apache-2.0
// Tiles of products of 8-bit integers. Each float of A is four u8 along k, each float of B the four i8 that they are
// multiplied by.
#include <utility>

#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/tile.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd_levels.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using gemm::IntegerEpilogue;
using gemm::IntegerProgram;
using gemm::Tap;
using gemm::Tile;
using gemm::TileTable;

// sums + the four products of each lane, with the CPU's instruction for it. It is written out, for the flags of the
// level do not include it; see multiplies_bytes().
struct ByteProducts {
  static constexpr bool kUnrolled = true;
  // With a row of B, an element of A and what flips its sign in registers as well.
  static constexpr int max_rows(int vectors) {
    constexpr int by_registers[2][gemm::kMaxTileVectors] = {{8, 5, 3, 2}, {12, 12, 9, 6}};
    return by_registers[kVecRegisters == 32][vectors - 1];
  }
  LATHE_INLINE static IntVec add(IntVec sums, IntVec a, IntVec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
#elif defined(LATHE_ISA_LEVEL_avx2)
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(a), "x"(b));
#endif
    return sums;
  }
};

// The same by products of 16 bits, which no sum of two exceeds. (Those of u8 and i8, vpmaddubsw, saturate.)
struct ShortProducts {
  // Nine instructions each: unrolled, they want more registers than there are, and greater tiles save one in twenty.
  static constexpr bool kUnrolled = false;
  static constexpr int max_rows(int vectors) { return vectors > 2 && kVecRegisters < 32 ? 2 : 4; }
  LATHE_INLINE static IntVec add(IntVec sums, IntVec a, IntVec b) {
#if defined(LATHE_ISA_LEVEL_avx512)
    const auto x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
    const __m512i even = _mm512_madd_epi16(_mm512_and_si512(x, _mm512_set1_epi32(0x00ff00ff)),
                                           _mm512_srai_epi16(_mm512_slli_epi16(y, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(x, 8), _mm512_srai_epi16(y, 8));
    return sums + reinterpret_cast<IntVec>(even) + reinterpret_cast<IntVec>(odd);
#elif defined(LATHE_ISA_LEVEL_avx2)
    const auto x = reinterpret_cast<__m256i>(a), y = reinterpret_cast<__m256i>(b);
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, _mm256_set1_epi32(0x00ff00ff)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(y, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(y, 8));
    return sums + reinterpret_cast<IntVec>(even) + reinterpret_cast<IntVec>(odd);
#elif defined(__x86_64__)
    const auto x = reinterpret_cast<__m128i>(a), y = reinterpret_cast<__m128i>(b);
    const __m128i even =
        _mm_madd_epi16(_mm_and_si128(x, _mm_set1_epi32(0x00ff00ff)), _mm_srai_epi16(_mm_slli_epi16(y, 8), 8));
    const __m128i odd = _mm_madd_epi16(_mm_srli_epi16(x, 8), _mm_srai_epi16(y, 8));
    return sums + reinterpret_cast<IntVec>(even) + reinterpret_cast<IntVec>(odd);
#else
    for (int i = 0; i < 4; ++i) sums += (a >> (8 * i) & 255) * (b << (24 - 8 * i) >> 24);
    return sums;
#endif
  }
};

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

// clip(round(x / scale) + zero, low, high). The quotient is a true one: its rounding error is computed and added.
struct Levels {
  explicit LATHE_INLINE Levels(const gemm::Rounding& rounding)
      : scale(broadcast(rounding.scale)),
        factor(broadcast(1 / rounding.scale)),
        zero(broadcast(rounding.zero)),
        low(broadcast(rounding.low)),
        high(broadcast(rounding.high)),
        least(broadcast((rounding.low - rounding.zero - 1) * rounding.scale)),
        most(broadcast((rounding.high - rounding.zero + 1) * rounding.scale)) {}
  LATHE_INLINE IntVec operator()(Vec x) const {
    x = min_or_second(most, max_or_second(least, x));
    Vec quotient = x * factor;
    quotient = mul_add(x - quotient * scale, factor, quotient);
    return round_to_int(min_or_second(high, max_or_second(low, round_even(quotient) + zero)));
  }
  Vec scale, factor, zero, low, high, least, most;
};

// sums[rows][stride] to floats, in place, or straight to the output where the program is so simple.
template <bool kRounds>
void finish_direct(const Tile& tile, const int32_t* sums, int64_t stride, int rows) {
  const IntegerEpilogue& integers = *tile.integers;
  const BoundEpilogue& middle = integers.middle;
  const Levels levels(integers.program->rounding);
  const Vec low = broadcast(middle.low), high = broadcast(middle.high);
  for (int c = 0; c < tile.columns; c += kLanes) {
    const int64_t column = tile.column + c;
    const int n = tile.columns - c < kLanes ? tile.columns - c : kLanes;
    const IntVec zero = load_int(integers.zero + column);
    const Vec scale = load(integers.scale + column);
    const Vec bias = middle.bias ? load_tail(middle.bias + column, n) : broadcast(-0.0f);
    for (int r = 0; r < rows; ++r) {
      Vec value = to_float(load_int(sums + r * stride + c) - zero) * scale + bias;
      value = min_or_second(high, max_or_second(low, value));
      if (kRounds)
        store_bytes(reinterpret_cast<std::byte*>(tile.where->out[r]) + column, levels(value), n);
      else if (n == kLanes)
        store(tile.where->out[r] + column, value);
      else
        store_tail(tile.where->out[r] + column, n, value);
    }
  }
}

template <class T>
void dequantize_row(float* to, const float* from, const IntegerProgram::Levels& levels, int64_t column, int columns) {
  const T* source = reinterpret_cast<const T*>(from) + column;
  const Vec zero = broadcast(levels.zero), scale = broadcast(levels.scale);
  for (int c = 0; c < columns; c += kLanes)
    store(to + c, (load_levels(source + c, columns - c < kLanes ? columns - c : kLanes) - zero) * scale);
}

// Runs the program on rows of floats that lie here.
void finish_program(const Tile& tile, int32_t* sums, int64_t stride, int rows) {
  alignas(64) float buffers[1 + gemm::kMaxSmallOperands][kMaxTileRows * kMaxTileColumns];
  float* next = buffers[1];
  const IntegerEpilogue& integers = *tile.integers;
  const BoundEpilogue& middle = integers.middle;
  auto* values = reinterpret_cast<float*>(sums);
  for (int c = 0; c < tile.columns; c += kLanes) {
    const IntVec zero = load_int(integers.zero + tile.column + c);
    const Vec scale = load(integers.scale + tile.column + c);
    for (int r = 0; r < rows; ++r)
      store(values + r * stride + c, to_float(load_int(sums + r * stride + c) - zero) * scale);
  }
  // Row 0 of what is dequantised or rounded lies where column `tile.column` of the output would be.
  TileRows where = *tile.where;
  for (int i = 0; integers.dequantizes && i < middle.count; ++i) {
    const DType type = integers.program->operand_types[i];
    if (!middle.operands[i].varies_by_row || (type != DType::i8 && type != DType::u8)) continue;
    for (int r = 0; r < rows; ++r) {
      float* to = next + r * kMaxTileColumns;
      const auto convert = type == DType::i8 ? dequantize_row<int8_t> : dequantize_row<uint8_t>;
      convert(to, where.operand[i][r], integers.program->levels[i], tile.column, tile.columns);
      where.operand[i][r] = to - tile.column;
    }
    next += kMaxTileRows * kMaxTileColumns;
  }
  if (integers.rounds)
    for (int r = 0; r < rows; ++r) where.out[r] = buffers[0] + r * kMaxTileColumns - tile.column;
  finish_tile(middle, where, values, stride, rows, tile.column, tile.columns);
  if (!integers.rounds) return;
  const Levels levels(integers.program->rounding);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < tile.columns; c += kLanes)
      store_bytes(reinterpret_cast<std::byte*>(tile.where->out[r]) + tile.column + c,
                  levels(load(buffers[0] + r * kMaxTileColumns + c)),
                  tile.columns - c < kLanes ? tile.columns - c : kLanes);
}

void finish_raw(const Tile& tile, const int32_t* sums, int64_t stride, int rows) {
  for (int c = 0; c < tile.columns; c += kLanes) {
    const int n = tile.columns - c < kLanes ? tile.columns - c : kLanes;
    const IntVec zero = load_int(tile.integers->zero + tile.column + c);
    for (int r = 0; r < rows; ++r)
      store_tail(tile.where->out[r] + tile.column + c, n, as_float(load_int(sums + r * stride + c) - zero));
  }
}

void finish(const Tile& tile, int32_t* sums, int64_t stride, int rows) {
  if (tile.integers->raw) return finish_raw(tile, sums, stride, rows);
  if (!tile.integers->direct) return finish_program(tile, sums, stride, rows);
  if (tile.integers->rounds)
    finish_direct<true>(tile, sums, stride, rows);
  else
    finish_direct<false>(tile, sums, stride, rows);
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
    for (int r = 0; r < kRows; ++r) LATHE_UNROLL
    for (int v = 0; v < kCols; ++v) sums[r][v] = IntVec{};
  }
  if (tile.integers->row_factor) {
    int32_t missing[kRows];
    sum_rows<Products>(tile, kRows, missing);
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kCols; ++v) sums[r][v] += missing[r];
  }
  if (!Products::kUnrolled || tile.integers->flip)
    multiply<Products, true>(sums, tile);
  else
    multiply<Products, false>(sums, tile);
  alignas(64) int32_t scratch[kRows * kCols * kLanes];
  const int64_t stride = tile.store_partial ? tile.partial_stride : kCols * kLanes;
  int32_t* to = tile.store_partial ? partial : scratch;
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r) LATHE_UNROLL
  for (int v = 0; v < kCols; ++v) store_int(to + r * stride + v * kLanes, sums[r][v]);
  if (!tile.store_partial) finish(tile, scratch, stride, kRows);
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
