// SPDX-License-Identifier: Apache-2.0
// How attention is cut into blocks, and what a thread needs for one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/attention/shown_keys.h"
#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/pairs.h"

namespace lathe::cpu::attention {

using gemm::Panels;

inline constexpr int kWidth = kMaxTileColumns;  // of panels
static_assert(kWidth == kKeyBlock);
inline constexpr int64_t kFewRows = 16;
// Of a block of queries: scores that stay in the cache, unless those of one tile do not.
inline constexpr int64_t kMostRows = 96, kScores = 40 << 10;
inline constexpr int64_t kSplitKeys = 128;  // whose weights are split together: their terms stay in the first cache
inline constexpr int kUsualVectors = 2;     // of a tile: every table has such

// From one row of so many scores to the next. Weights in pairs begin where the first key's score is, which may be one
// of the last, and are whole matrix registers; in a window any key may be the first of its row's vectors. Rows a
// multiple of 4 KiB apart would share few lines of the first cache.
inline int64_t pitch_of(int64_t keys, bool bf16, bool has_window) {
  const int64_t floats = round_up<int64_t>(keys, 16) + (bf16 ? 48 : has_window ? 16 : 0);
  return floats + (floats % 1024 == 0 ? 16 : 0);
}

struct Sizes {
  Sizes(const TensorArg& q, const TensorArg& k, const TensorArg& v, const AttentionParams& params)
      : depth(q.dims[3]),
        heads(q.dims[1]),
        shared(k.dims[1]),
        queries(q.dims[2]),
        keys(k.dims[2]),
        groups(q.dims[0] * shared),
        rows(shared == 0 ? 0 : heads / shared * queries),
        bf16(params.bf16 && rows > kFewRows && multiplies_bf16()),
        splits(!bf16 && gemm::usable_split_functions() && pays_to_split()),
        has_window(params.window > 0),
        by_key{steps(depth), keys, kWidth},
        values{steps_of_weights(keys), v.dims[3], kWidth},
        pitch(pitch_of(keys, bf16, has_window)),
        block(block_of(rows)),
        copies_q(q.strides[3] != 1 && depth != 1),
        // For few rows values are read where they lie, if whole vectors of them are side by side.
        packs_values(rows > kFewRows || v.strides[3] != 1 || v.dims[3] % gemm::kPanelQuantum != 0) {}
  int64_t most_rows() const { return std::max(block, std::min(rows, kMostRows)); }  // that are done together
  int64_t blocks() const { return ceil_div(rows, block); }
  int64_t units() const { return groups * blocks(); }
  double flops_of_unit() const {
    return 2.0 * static_cast<double>(block * keys) * static_cast<double>(by_key.k + values.n);
  }

  // Products of floats in matrix registers. Fewer rows or keys take as long by vectors.
  bool pays_to_split() const {
    constexpr int64_t kLeast = 256;
    return rows >= kLeast && keys >= kLeast && depth >= gemm::kSplitDepth;
  }

  // Of tiles along so many elements, which may be in pairs.
  int64_t steps(int64_t elements) const { return bf16 ? gemm::pairs_of(elements) : elements; }
  // Likewise along so many keys, in whole matrix registers where there are some: weights and values behind them are
  // zeros, and no rests have to be copied.
  int64_t steps_of_weights(int64_t seen) const {
    return bf16 && has_matrix_registers() ? round_up<int64_t>(steps(seen), gemm::kMatrixRegisterRows) : steps(seen);
  }
  const gemm::TileTable& tiles() const {
    static const gemm::TileTable& floats = LATHE_ISA_SELECT(tile_table)();
    return bf16 ? gemm::pair_tiles() : floats;
  }
  // Tiles of equal heights, for which matrix registers are set up once.
  int64_t block_of(int64_t all) const {
    if (all == 0) return 1;
    const int usual = splits ? 2 * gemm::kMatrixRegisterRows : tiles().max_rows[kUsualVectors - 1];
    const int64_t tile = splits ? usual : ceil_div(all, ceil_div<int64_t>(all, usual));
    const int64_t most = std::min(kScores / std::max<int64_t>(pitch, 1), kMostRows);
    return std::min(std::max<int64_t>(most / tile, 1) * tile, all);
  }

  int64_t depth, heads, shared, queries, keys;
  int64_t groups;  // heads of keys and values, of all batches
  int64_t rows;    // of a group: the queries of its heads
  bool bf16, splits, has_window;
  Panels by_key, values;
  int64_t pitch;  // from one row of scores of all keys to the next
  int64_t block;  // rows that are done together, at least
  bool copies_q, packs_values;
};

// Where a row of a group is, and which keys it sees.
struct Place {
  int64_t batch, head, query;
  RowKeys keys;
};

// A thread's memory, as offsets.
struct AttentionScratch {
  explicit AttentionScratch(const Sizes& sizes, const AttentionParams& params) {
    const auto take = [&](int64_t bytes) {
      const size_t at = total;
      total += static_cast<size_t>(round_up<int64_t>(bytes, 64));
      return at;
    };
    constexpr int64_t kFloat = sizeof(float);
    keys = take(sizes.by_key.floats() * kFloat);
    values = take(sizes.packs_values ? sizes.values.floats() * kFloat : 0);
    // Of a group whose last rows there are none, sums are written all the same.
    scores = take((sizes.block + (sizes.splits ? gemm::kMatrixRegisterRows : 0)) * sizes.pitch * kFloat);
    queries = take(sizes.copies_q || sizes.bf16 ? sizes.most_rows() * sizes.depth * kFloat : 0);
    if (sizes.splits) {
      const int64_t depth = sizes.depth, keys_of_row = sizes.keys;
      query_terms = take(SplitProduct::floats(sizes.most_rows() + gemm::kMatrixRegisterRows, depth) * kFloat);
      key_terms = take(SplitProduct::floats(keys_of_row, depth) * kFloat);
      weight_terms = take(SplitProduct::floats(kMaxTileRows, std::min(keys_of_row, kSplitKeys)) * kFloat);
      value_terms = take(SplitProduct::floats(sizes.values.n, keys_of_row) * kFloat);
    }
    sums = take(kMaxTileRows * (sizes.splits ? round_up<int64_t>(sizes.values.n, kWidth) : kWidth) * kFloat);
    mask = take((params.masked + params.has_distances) * sizes.pitch * kFloat);  // a row of it, and what is added
    q_rows = take(sizes.most_rows() * static_cast<int64_t>(sizeof(float*)));
    keys_of_queries = take(params.masked ? sizes.queries * static_cast<int64_t>(sizeof(RowKeys)) : 0);
    places = take(sizes.most_rows() * static_cast<int64_t>(sizeof(Place)));
  }
  size_t keys, values, scores, queries, sums, mask, q_rows, places, keys_of_queries, total = 0;
  size_t query_terms = 0, key_terms = 0, weight_terms = 0, value_terms = 0;  // of those that are split
};

}  // namespace lathe::cpu::attention
