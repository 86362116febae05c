// SPDX-License-Identifier: Apache-2.0
// Tiles of products of narrow numbers in matrix registers (Intel AMX): 16 rows of 64 bytes each. A tile has up to two
// of them of A by up to two of B, which lie in panels as the instructions want them: a row has 16 columns of four i8
// or two bf16 along K. See has_matrix_registers().
#include <algorithm>

#include "kernels/cpu/gemm/folded_levels.h"
#include "kernels/cpu/gemm/matrix_tiles.h"

namespace lathe::cpu::LATHE_ISA {

#if defined(LATHE_ISA_LEVEL_avx512)
namespace {

using gemm::kMatrixRegisterRows;
using gemm::Tap;
using gemm::Tile;
using gemm::TileTable;

// Floats in a row of a register: along K of A, and columns of B and of sums. So many rows has one of B.
constexpr int kDepth = 16;
// Registers: sums of rows i and columns j are number 2 i + j, then come two of A and two of B.
constexpr int kA = 4, kB = 6;

template <int kNumber>
LATHE_INLINE void load_matrix(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kNumber) : "memory");
}
template <int kNumber>
LATHE_INLINE void store_matrix(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kNumber) : "memory");
}
template <int kNumber>
LATHE_INLINE void clear_matrix() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kNumber));
}

struct UnsignedBytes {
  template <int kSums, int kLeft, int kRight>
  LATHE_INLINE static void add() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
  }
};
struct SignedBytes {
  template <int kSums, int kLeft, int kRight>
  LATHE_INLINE static void add() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
  }
};
struct Pairs {
  template <int kSums, int kLeft, int kRight>
  LATHE_INLINE static void add() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
  }
};

// What LDTILECFG reads (Intel's manual, volume 1, chapter 18). Registers of A and of sums have the tile's rows.
struct alignas(64) Configuration {
  explicit Configuration(int rows) {
    const int first = rows < kMatrixRegisterRows ? rows : kMatrixRegisterRows, second = rows - first;
    for (int i = 0; i < 8; ++i) bytes[i] = 64;
    for (int j = 0; j < 2; ++j) {
      heights[j] = heights[kA] = static_cast<uint8_t>(first);
      heights[2 + j] = heights[kA + 1] = static_cast<uint8_t>(second > 0 ? second : 1);
      heights[kB + j] = kDepth;
    }
  }
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t heights[16] = {};
};

// Loading it clears the registers and takes a hundred clocks, so that a thread does so where the rows change.
LATHE_INLINE void configure(const Tile& tile) {
  if (*tile.configured == tile.rows) return;
  const Configuration configuration(tile.rows);
  asm volatile("ldtilecfg %0" ::"m"(configuration));
  *tile.configured = tile.rows;
}

void leave() { asm volatile("tilerelease"); }

// Up to 16 rows of A, as taps list them.
class Rows {
 public:
  LATHE_INLINE Rows(const Tile& tile, int first, int count) : tile_(tile), first_(first), count_(count) {}

  // Before its first load().
  LATHE_INLINE void enter(const Tap& tap) {
    const float* const* rows = rows_of(tap);
    stride_ = count_ > 1 ? distance(rows) : 0;
    is_even_ = true;
    for (int r = 2; r < count_; ++r) is_even_ &= distance(rows + r - 1) == stride_;
  }
  // Elements [at, at + 16) along K of the tap that was entered: a register takes rows in equal distances.
  template <int kNumber>
  LATHE_INLINE void load(const Tap& tap, int64_t at) const {
    if (is_even_)
      load_matrix<kNumber>(rows_of(tap)[0] + offset_of(tap) + at, stride_);
    else
      load_parts<kNumber>(tap, at, kDepth);
  }
  // `count` elements from `at` on, of this tap and those behind it, and zeros. Nothing else is read.
  template <int kNumber>
  LATHE_INLINE void load_parts(const Tap& tap, int64_t at, int64_t count) const {
    alignas(64) float copies[kMatrixRegisterRows * kDepth];
    int64_t done = 0;
    for (const Tap* part = &tap; done < count; ++part, at = 0) {
      const int64_t end = std::min(done + part->depth - at, count);
      const auto mask = static_cast<__mmask16>((1u << end) - (1u << done));
      const float* const* rows = rows_of(*part);
      const int64_t offset = offset_of(*part) + at - done;
      if (done == 0)
        for (int r = 0; r < count_; ++r)
          _mm512_store_ps(copies + r * kDepth, _mm512_maskz_loadu_ps(mask, rows[r] + offset));
      else
        for (int r = 0; r < count_; ++r)
          _mm512_store_ps(copies + r * kDepth,
                          _mm512_mask_loadu_ps(_mm512_load_ps(copies + r * kDepth), mask, rows[r] + offset));
      done = end;
    }
    load_matrix<kNumber>(copies, 64);
  }

 private:
  LATHE_INLINE const float* const* rows_of(const Tap& tap) const {
    return tile_.a_rows + tap.list * tile_.rows + first_;
  }
  LATHE_INLINE int64_t offset_of(const Tap& tap) const { return tap.a_offset + tile_.a_offset; }
  // In bytes, of which a row of 8-bit integers may have any number to the next.
  LATHE_INLINE static int64_t distance(const float* const* rows) {
    return reinterpret_cast<intptr_t>(rows[1]) - reinterpret_cast<intptr_t>(rows[0]);
  }

  const Tile& tile_;
  int first_, count_;
  int64_t stride_ = 0;  // from one row to the next, in bytes
  bool is_even_ = true;
};

template <class Products, int kHeight, int kWidth>
LATHE_INLINE void multiply_registers() {
  Products::template add<0, kA, kB>();
  if constexpr (kWidth == 2) Products::template add<1, kA, kB + 1>();
  if constexpr (kHeight == 2) Products::template add<2, kA + 1, kB>();
  if constexpr (kHeight == 2 && kWidth == 2) Products::template add<3, kA + 1, kB + 1>();
}

template <int kWidth>
LATHE_INLINE void load_columns(const float* b, int64_t stride) {
  load_matrix<kB>(b, stride);
  if constexpr (kWidth == 2) load_matrix<kB + 1>(b + kDepth, stride);
}

// `count` of B's rows from `k` on. Behind them a register holds further rows of the panel, or zeros: A has zeros there.
template <int kWidth>
LATHE_INLINE void load_rows(const Tile& tile, int64_t k, int64_t count) {
  const float* b = tile.b + k * tile.b_stride;
  if (k + kDepth <= tile.b_rows) return load_columns<kWidth>(b, tile.b_stride * 4);
  alignas(64) float copies[kDepth * kWidth * kDepth] = {};
  for (int64_t i = 0; i < count; ++i) LATHE_UNROLL
  for (int v = 0; v < kWidth; ++v) store(copies + (i * kWidth + v) * kDepth, load(b + i * tile.b_stride + v * kDepth));
  load_columns<kWidth>(copies, kWidth * 64);
}

// Taps whose rows of B follow each other are one run, however deep each is: registers take 16 of it at a time.
template <class Products, int kHeight, int kWidth>
LATHE_INLINE const Tap* multiply_run(const Tile& tile, const Tap* tap, const Tap* end, const char*& prefetched) {
  Rows first(tile, 0, kHeight == 2 ? kMatrixRegisterRows : tile.rows),
      second(tile, kMatrixRegisterRows, tile.rows - kMatrixRegisterRows);
  const Tap* last = tap;
  int64_t depth = tap->depth;
  for (; last + 1 < end && last[1].depth > 0 && last[1].k == last->k + last->depth; ++last) depth += last[1].depth;
  const Tap* entered = nullptr;
  int64_t at = 0;  // in the tap
  for (int64_t k = tap->k, rest = depth; rest > 0; k += kDepth, rest -= kDepth, at += kDepth) {
    for (; at >= tap->depth; ++tap) at -= tap->depth;
    load_rows<kWidth>(tile, k, rest);
    if (at + kDepth <= tap->depth) {
      if (entered != tap) {
        first.enter(*tap);
        if constexpr (kHeight == 2) second.enter(*tap);
        entered = tap;
      }
      first.load<kA>(*tap, at);
      if constexpr (kHeight == 2) second.load<kA + 1>(*tap, at);
    } else {
      first.load_parts<kA>(*tap, at, std::min<int64_t>(rest, kDepth));
      if constexpr (kHeight == 2) second.load_parts<kA + 1>(*tap, at, std::min<int64_t>(rest, kDepth));
    }
    for (int i = 0; i < 4 * tile.prefetch_lines; ++i, prefetched += 64) prefetch_l2(prefetched);
    multiply_registers<Products, kHeight, kWidth>();
  }
  return last + 1;
}

template <class Products, int kHeight, int kWidth>
LATHE_INLINE void multiply(const Tile& tile) {
  const char* prefetched = tile.prefetch;
  for (const Tap *tap = tile.taps, *end = tap + tile.tap_count; tap < end;)
    tap = tap->depth == 0 ? tap + 1 : multiply_run<Products, kHeight, kWidth>(tile, tap, end, prefetched);
}

// `stride` in floats.
template <int kHeight, int kWidth>
LATHE_INLINE void load_sums(const float* from, int64_t stride) {
  load_matrix<0>(from, stride * 4);
  if constexpr (kWidth == 2) load_matrix<1>(from + kDepth, stride * 4);
  from += kMatrixRegisterRows * stride;
  if constexpr (kHeight == 2) load_matrix<2>(from, stride * 4);
  if constexpr (kHeight == 2 && kWidth == 2) load_matrix<3>(from + kDepth, stride * 4);
}
template <int kHeight, int kWidth>
LATHE_INLINE void store_sums(float* to, int64_t stride) {
  store_matrix<0>(to, stride * 4);
  if constexpr (kWidth == 2) store_matrix<1>(to + kDepth, stride * 4);
  to += kMatrixRegisterRows * stride;
  if constexpr (kHeight == 2) store_matrix<2>(to, stride * 4);
  if constexpr (kHeight == 2 && kWidth == 2) store_matrix<3>(to + kDepth, stride * 4);
}

template <class Products, int kHeight, int kWidth>
LATHE_INLINE void sum_products(const Tile& tile, float* to, int64_t stride) {
  if (tile.load_partial) {
    load_sums<kHeight, kWidth>(tile.partial, tile.partial_stride);
  } else {
    clear_matrix<0>(), clear_matrix<1>(), clear_matrix<2>(), clear_matrix<3>();
  }
  multiply<Products, kHeight, kWidth>(tile);
  store_sums<kHeight, kWidth>(to, stride);
}

// Sums of the last block of K go to `sums`, others to where partial ones are.
template <class Products, int kWidth>
LATHE_INLINE void sum_tile(const Tile& tile, float* sums) {
  configure(tile);
  float* to = tile.store_partial ? tile.partial : sums;
  const int64_t stride = tile.store_partial ? tile.partial_stride : kWidth * kDepth;
  if (tile.rows > kMatrixRegisterRows)
    sum_products<Products, 2, kWidth>(tile, to, stride);
  else
    sum_products<Products, 1, kWidth>(tile, to, stride);
}

// T: see FoldedLevels.
template <bool kHasBetween, class T, int kWidth>
LATHE_INLINE void finish_levels(const Tile& tile, const int32_t* sums, const int32_t* zeros) {
  const gemm::IntegerEpilogue& integers = *tile.integers;
  const FoldedLevels<kHasBetween, T> level(integers.folded);
  Vec scale[kWidth], offset[kWidth];
  IntVec zero[kWidth];
  LATHE_UNROLL
  for (int v = 0; v < kWidth; ++v) {
    const int64_t column = tile.column + v * kLanes;
    scale[v] = load(integers.scale + column);
    offset[v] = load(integers.folded.offset + column);
    zero[v] = load_int(zeros + column);
  }
  for (int r = 0; r < tile.rows; ++r) {
    IntVec levels[4] = {};
    LATHE_UNROLL
    for (int v = 0; v < kWidth; ++v)
      levels[v] = level(load_int(sums + (r * kWidth + v) * kLanes) - zero[v], scale[v], offset[v],
                        residuals_at<T>(integers, *tile.where, r, tile.column + v * kLanes), kLanes);
    store_packed(reinterpret_cast<std::byte*>(tile.where->out[r]) + tile.column, levels, tile.columns, level.packing);
  }
}

template <int kWidth>
void run_integers(const Tile& tile) {
  alignas(64) int32_t sums[2 * kMatrixRegisterRows * kWidth * kDepth];
  const gemm::IntegerEpilogue& integers = *tile.integers;
  if (integers.flip)
    sum_tile<SignedBytes, kWidth>(tile, reinterpret_cast<float*>(sums));
  else
    sum_tile<UnsignedBytes, kWidth>(tile, reinterpret_cast<float*>(sums));
  if (tile.store_partial) return;
  const int32_t* zeros = integers.flip ? integers.signed_zero : integers.zero;
  if (integers.folded.offset) {
    if (integers.residual < 0 && !integers.has_between) return finish_levels<false, void, kWidth>(tile, sums, zeros);
    const bool is_usual = integers.residual >= 0 && integers.has_between && tile.columns == kWidth * kLanes &&
                          integers.program->operand_types[static_cast<size_t>(integers.residual)] == DType::u8;
    if (is_usual) return finish_levels<true, uint8_t, kWidth>(tile, sums, zeros);
  }
  for (int r = 0; r < tile.rows; ++r) LATHE_UNROLL
  for (int v = 0; v < kWidth; ++v) {
    int32_t* sum = sums + (r * kWidth + v) * kLanes;
    store_int(sum, load_int(sum) - load_int(zeros + tile.column + v * kLanes));
  }
  finish_integers(integers, *tile.where, sums, kWidth * kLanes, tile.rows, tile.column, tile.columns);
}

template <int kWidth>
void run_pairs(const Tile& tile) {
  alignas(64) float sums[2 * kMatrixRegisterRows * kWidth * kDepth];
  sum_tile<Pairs, kWidth>(tile, sums);
  if (!tile.store_partial)
    finish_tile(*tile.epilogue, *tile.where, sums, kWidth * kDepth, tile.rows, tile.column, tile.columns);
}

TileTable table_of(const gemm::TileFunction (&functions)[2]) {
  TileTable table{};
  table.lanes = kLanes;
  table.vectors = 2;
  table.has_whole_tiles = true;
  table.leave = leave;
  for (int v = 0; v < 2; ++v) {
    table.max_rows[v] = gemm::kMatrixTileRows[v];
    std::fill_n(table.functions[v], table.max_rows[v], functions[v]);
  }
  return table;
}

}  // namespace

const gemm::MatrixTiles* matrix_tiles() {
  static const gemm::MatrixTiles tiles{table_of({run_integers<1>, run_integers<2>}),
                                       table_of({run_pairs<1>, run_pairs<2>})};
  return &tiles;
}

#else

const gemm::MatrixTiles* matrix_tiles() { return nullptr; }

#endif

}  // namespace lathe::cpu::LATHE_ISA
