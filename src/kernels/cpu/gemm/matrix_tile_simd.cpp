// SPDX-License-Identifier: Apache-2.0
// Tiles of products of narrow numbers in matrix registers (Intel AMX): 16 rows of 64 bytes each. A tile has up to two
// of them of A by up to two of B, which lie in panels as the instructions want them: a row has 16 columns of four i8
// or two bf16 along K. See has_matrix_registers().
#include <algorithm>

#include "kernels/cpu/gemm/folded_levels.h"
#include "kernels/cpu/gemm/matrix_registers.h"
#include "kernels/cpu/gemm/matrix_tiles.h"

namespace lathe::cpu::LATHE_ISA {

#if defined(LATHE_ISA_LEVEL_avx512)
namespace {

using gemm::Tap;
using gemm::TileTable;

// Up to 16 rows of A, as taps list them.
class Rows {
 public:
  LATHE_INLINE Rows(const Tile& tile, int first, int count) : tile_(tile), first_(first), count_(count) {}

  // Before its first load().
  LATHE_INLINE void enter(const Tap& tap) {
    const float* const* rows = rows_of(tap);
    stride_ = tile_.a_distance;
    if (stride_ != 0) return;
    stride_ = count_ > 1 ? distance(rows) : 0;
    is_even_ = true;
    for (int r = 2; r < count_; ++r) is_even_ &= distance(rows + r - 1) == stride_;
  }
  // Of the tap that was entered: a register takes rows in equal distances.
  bool is_even() const { return is_even_; }
  LATHE_INLINE const float* begin(const Tap& tap) const { return rows_of(tap)[0] + offset_of(tap); }
  LATHE_INLINE int64_t stride() const { return stride_; }
  // `count` elements from `at` on, of this tap and those behind it, and zeros. Nothing else is read.
  template <int kNumber>
  LATHE_INLINE void load_parts(const Tap& tap, int64_t at, int64_t count) const {
    alignas(64) float copies[kMatrixRegisterRows * kDepth];
    copy_parts(&tap, at, count, copies);
    load_matrix<kNumber>(copies, 64);
  }

 private:
  // One function for all tiles: it is long.
  __attribute__((noinline)) void copy_parts(const Tap* part, int64_t at, int64_t count, float* copies) const {
    for (int64_t done = 0, end; done < count; ++part, at = 0, done = end) {
      end = std::min(done + part->depth - at, count);
      const auto mask = static_cast<__mmask16>((1u << end) - (1u << done));
      const float* const* rows = rows_of(*part);
      const int64_t offset = offset_of(*part) + at - done;
      for (int r = 0; r < count_; ++r) {
        float* row = copies + r * kDepth;
        const __m512 before = done == 0 ? zero() : load(row);
        _mm512_store_ps(row, _mm512_mask_loadu_ps(before, mask, rows[r] + offset));
      }
    }
  }
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
LATHE_INLINE void load_columns(const float* b, int64_t stride, int64_t next) {
  load_matrix<kB>(b, stride);
  if constexpr (kWidth == 2) load_matrix<kB + 1>(b + next, stride);
}

__attribute__((noinline)) void copy_rows(const Tile& tile, int64_t k, int width, float* to) {
  const float* b = tile.b + k * tile.b_stride;
  for (int64_t i = 0; i < kDepth; ++i, b += tile.b_stride)
    for (int v = 0; v < width; ++v, to += kDepth) store(to, k + i < tile.b_rows ? load(b + v * tile.b_next) : zero());
}

// B's rows from `k` on. Behind those that A is multiplied by a register holds further rows of the panel, or zeros: A
// has zeros there.
template <int kWidth>
LATHE_INLINE void load_rows(const Tile& tile, int64_t k) {
  if (k + kDepth <= tile.b_rows)
    return load_columns<kWidth>(tile.b + k * tile.b_stride, tile.b_stride * 4, tile.b_next);
  alignas(64) float copies[kDepth * kWidth * kDepth];
  copy_rows(tile, k, kWidth, copies);
  load_columns<kWidth>(copies, kWidth * 64, kDepth);
}

// Taps whose rows of B follow each other are one run, however deep each is: registers take 16 of it at a time.
template <class Products, int kHeight, int kWidth>
LATHE_INLINE const Tap* multiply_run(const Tile& tile, const Tap* tap, const Tap* end, const char*& prefetched) {
  const int rows = first_rows(tile);
  Rows first(tile, 0, rows), second(tile, rows, tile.rows - rows);
  const Tap* last = tap;
  int64_t rest = tap->depth;
  for (; last + 1 < end && last[1].depth > 0 && last[1].k == last->k + last->depth; ++last) rest += last[1].depth;
  int64_t entered = -1;  // list
  int64_t at = 0;        // in the tap
  const int lines = 4 * tile.prefetch_lines;
  for (int64_t k = tap->k; rest > 0;) {
    for (; at >= tap->depth; ++tap) at -= tap->depth;
    if (entered != tap->list) {
      first.enter(*tap);
      if constexpr (kHeight == 2) second.enter(*tap);
      entered = tap->list;
    }
    int64_t steps = std::min(tap->depth - at, tile.b_rows - k) / kDepth;
    const bool is_even = first.is_even() && (kHeight == 1 || second.is_even());
    if (steps == 0 || !is_even) {
      steps = 1;
      load_rows<kWidth>(tile, k);
      first.load_parts<kA>(*tap, at, std::min<int64_t>(rest, kDepth));
      if constexpr (kHeight == 2) second.load_parts<kA + 1>(*tap, at, std::min<int64_t>(rest, kDepth));
      multiply_registers<Products, kHeight, kWidth>();
    } else {
      const float *a = first.begin(*tap) + at, *b = tile.b + k * tile.b_stride;
      [[maybe_unused]] const float* below = kHeight == 2 ? second.begin(*tap) + at : nullptr;
      for (int64_t i = 0; i < steps; ++i, b += kDepth * tile.b_stride) {
        load_columns<kWidth>(b, tile.b_stride * 4, tile.b_next);
        load_matrix<kA>(a + i * kDepth, first.stride());
        if constexpr (kHeight == 2) load_matrix<kA + 1>(below + i * kDepth, second.stride());
        for (int line = 0; line < lines; ++line, prefetched += 64) prefetch_l2(prefetched);
        multiply_registers<Products, kHeight, kWidth>();
      }
    }
    k += steps * kDepth;
    rest -= steps * kDepth;
    at += steps * kDepth;
  }
  return last + 1;
}

// Of taps that registers are as deep as.
template <class Products, int kHeight, int kWidth>
LATHE_INLINE void multiply_taps(const Tile& tile) {
  const float* const* rows = tile.a_rows;
  const int below = first_rows(tile);
  for (const Tap *tap = tile.taps, *end = tap + tile.tap_count; tap < end; ++tap) {
    const int64_t offset = tap->a_offset + tile.a_offset;
    load_columns<kWidth>(tile.b + tap->k * tile.b_stride, tile.b_stride * 4, tile.b_next);
    load_matrix<kA>(rows[0] + offset, tile.a_distance);
    if constexpr (kHeight == 2) load_matrix<kA + 1>(rows[below] + offset, tile.a_distance);
    multiply_registers<Products, kHeight, kWidth>();
  }
}

// Of blocks, which end in zeros.
template <class Products, int kHeight, int kWidth>
LATHE_INLINE void multiply_blocks(const Tile& tile) {
  const Tap& last = tile.taps[tile.tap_count - 1];
  const int64_t block = tile.height * kDepth, whole = std::min(last.k + last.depth, tile.b_rows / kDepth * kDepth);
  int64_t k = tile.taps[0].k;
  const float *a = tile.a_blocks + k / kDepth * block, *b = tile.b + k * tile.b_stride;
  const auto load_rows_of_a = [&] {
    load_matrix<kA>(a, 64);
    if constexpr (kHeight == 2) load_matrix<kA + 1>(a + tile.block_group, 64);
  };
  for (; k < whole; k += kDepth, a += block, b += kDepth * tile.b_stride) {
    load_columns<kWidth>(b, tile.b_stride * 4, tile.b_next);
    load_rows_of_a();
    multiply_registers<Products, kHeight, kWidth>();
  }
  if (k >= last.k + last.depth) return;
  load_rows<kWidth>(tile, k);
  load_rows_of_a();
  multiply_registers<Products, kHeight, kWidth>();
}

template <class Products, int kHeight, int kWidth>
LATHE_INLINE void multiply(const Tile& tile) {
  if constexpr (std::is_same_v<Products, Pairs>)
    if (tile.a_blocks) return multiply_blocks<Products, kHeight, kWidth>(tile);
  if constexpr (!std::is_same_v<Products, Pairs>)
    if (tile.depth > 0) return multiply_taps<Products, kHeight, kWidth>(tile);
  const char* prefetched = tile.prefetch;
  for (const Tap *tap = tile.taps, *end = tap + tile.tap_count; tap < end;)
    tap = tap->depth == 0 ? tap + 1 : multiply_run<Products, kHeight, kWidth>(tile, tap, end, prefetched);
}

// Where a tile's sums are, or what they begin with; strides from row to row, in bytes.
template <int kHeight, int kWidth>
LATHE_INLINE void load_sums(const Tile& tile, const float* from, int64_t stride) {
  load_matrix<0>(from, stride);
  if constexpr (kWidth == 2) load_matrix<1>(from + kDepth, stride);
  from += first_rows(tile) * stride / 4;
  if constexpr (kHeight == 2) load_matrix<2>(from, stride);
  if constexpr (kHeight == 2 && kWidth == 2) load_matrix<3>(from + kDepth, stride);
}
template <int kHeight, int kWidth>
LATHE_INLINE void store_sums(const Tile& tile, float* to, int64_t stride) {
  store_matrix<0>(to, stride);
  if constexpr (kWidth == 2) store_matrix<1>(to + kDepth, stride);
  to += first_rows(tile) * stride / 4;
  if constexpr (kHeight == 2) store_matrix<2>(to, stride);
  if constexpr (kHeight == 2 && kWidth == 2) store_matrix<3>(to + kDepth, stride);
}

template <class Products, int kHeight, int kWidth>
LATHE_INLINE void sum_products(const Tile& tile, float* to, int64_t stride) {
  if (tile.load_partial)
    load_sums<kHeight, kWidth>(tile, tile.partial, tile.partial_stride * 4);
  else if (std::is_same_v<Products, Pairs> || !tile.integers->start)
    clear_matrix<0>(), clear_matrix<1>(), clear_matrix<2>(), clear_matrix<3>();
  else  // a row for all rows
    load_sums<kHeight, kWidth>(tile, reinterpret_cast<const float*>(tile.integers->start + tile.column), 0);
  multiply<Products, kHeight, kWidth>(tile);
  store_sums<kHeight, kWidth>(tile, to, stride * 4);
}

// Sums of the last block of K go to `sums`, others to where partial ones are.
template <class Products, int kWidth>
LATHE_INLINE void sum_tile(const Tile& tile, float* sums) {
  configure(tile);
  float* to = tile.store_partial ? tile.partial : sums;
  const int64_t stride = tile.store_partial ? tile.partial_stride : kWidth * kDepth;
  if (tile.rows > first_rows(tile))
    sum_products<Products, 2, kWidth>(tile, to, stride);
  else
    sum_products<Products, 1, kWidth>(tile, to, stride);
}

// T: see FoldedLevels.
template <Between kBetween, class T, int kWidth>
LATHE_INLINE void finish_levels(const Tile& tile, const int32_t* sums) {
  const gemm::IntegerEpilogue& integers = *tile.integers;
  const FoldedLevels<kBetween, T> level(integers.folded);
  Vec scale[kWidth], offset[kWidth];
  LATHE_UNROLL
  for (int v = 0; v < kWidth; ++v) {
    scale[v] = load(integers.scale + tile.column + v * kLanes);
    offset[v] = load(integers.folded.offset + tile.column + v * kLanes);
  }
  const auto mask = static_cast<__mmask32>((uint64_t{1} << tile.columns) - 1);
  // The bytes of so many rows are a vector. The last row is taken again where there are fewer.
  constexpr int kTogether = 4 / kWidth;
  const int rows = tile.rows - tile.skipped;
  const auto finish_rows = [&](auto row_at) {
    IntVec levels[4];
    LATHE_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int row = row_at(i);
      LATHE_UNROLL
      for (int v = 0; v < kWidth; ++v)
        levels[i * kWidth + v] = level(load_int(sums + (row * kWidth + v) * kLanes), scale[v], offset[v],
                                       residuals_at<T>(integers, *tile.where, row, tile.column + v * kLanes), kLanes);
    }
    const __m512i bytes = in_a_row(pack_in_turns(levels, level.packing));
    const auto store_row = [&]<int kPart>() {
      auto* out = reinterpret_cast<std::byte*>(tile.where->out[row_at(kPart)]) + tile.column;
      if constexpr (kWidth == 2)
        _mm256_mask_storeu_epi8(out, mask, _mm512_extracti64x4_epi64(bytes, kPart));
      else
        _mm_mask_storeu_epi8(out, static_cast<__mmask16>(mask), _mm512_extracti32x4_epi32(bytes, kPart));
    };
    store_row.template operator()<0>();
    store_row.template operator()<1>();
    if constexpr (kWidth == 1) store_row.template operator()<2>(), store_row.template operator()<3>();
  };
  int r = 0;
  for (; r + kTogether <= rows; r += kTogether) finish_rows([r](int i) { return r + i; });
  if (r < rows) finish_rows([r, rows](int i) { return std::min(r + i, rows - 1); });
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
  int32_t* finished = sums + tile.skipped * kWidth * kLanes;
  if (integers.folded.offset && integers.term < 0) {
    if (integers.residual < 0 && !integers.has_between)
      return finish_levels<Between::none, void, kWidth>(tile, finished);
    const bool is_usual = integers.residual >= 0 && integers.has_between && tile.columns == kWidth * kLanes &&
                          integers.program->operand_types[static_cast<size_t>(integers.residual)] == DType::u8;
    if (is_usual)
      return (integers.folded.divides ? finish_levels<Between::divided, uint8_t, kWidth>
                                      : finish_levels<Between::folded, uint8_t, kWidth>)(tile, finished);
  }
  finish_integers(integers, *tile.where, finished, kWidth * kLanes, tile.rows - tile.skipped, tile.column,
                  tile.columns);
}

template <int kWidth>
void run_pairs(const Tile& tile) {
  alignas(64) float sums[2 * kMatrixRegisterRows * kWidth * kDepth];
  sum_tile<Pairs, kWidth>(tile, sums);
  if (!tile.store_partial)
    finish_tile(*tile.epilogue, *tile.where, sums + tile.skipped * kWidth * kDepth, kWidth * kDepth,
                tile.rows - tile.skipped, tile.column, tile.columns);
}

// 16 elements at a time, of as many taps as those are of.
void gather(const Tile& tile, float* to, int64_t stride, bool zeros_first) {
  struct Part {
    const float* const* rows;
    int64_t offset;
    __mmask16 lanes;
  };
  int64_t at = 0, rest = 0;  // in the tap; of all taps
  for (int64_t i = 0; i < tile.tap_count; ++i) rest += tile.taps[i].depth;
  for (const Tap *tap = tile.taps, *end = tap + tile.tap_count; tap < end; to += kDepth, rest -= kDepth) {
    Part parts[kDepth];
    int count = 0;
    for (int64_t done = zeros_first && rest < kDepth ? kDepth - rest : 0; done < kDepth && tap < end;) {
      const int64_t begin = done;
      done = std::min<int64_t>(done + tap->depth - at, kDepth);
      parts[count++] = {tile.a_rows + tap->list * tile.rows, tap->a_offset + at - begin,
                        static_cast<__mmask16>((1u << done) - (1u << begin))};
      at += done - begin;
      if (at == tap->depth) ++tap, at = 0;
    }
    for (int r = 0; r < tile.rows; ++r) {
      __m512 elements = _mm512_maskz_loadu_ps(parts[0].lanes, parts[0].rows[r] + parts[0].offset);
      for (int p = 1; p < count; ++p)
        elements = _mm512_mask_loadu_ps(elements, parts[p].lanes, parts[p].rows[r] + parts[p].offset);
      _mm512_store_ps(to + r * stride, elements);
    }
  }
}

TileTable table_of(const gemm::TileFunction (&functions)[2]) {
  TileTable table{};
  table.lanes = kLanes;
  table.vectors = 2;
  table.has_equal_tiles = true;
  table.leave = release_matrices;
  table.gather = gather;
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
