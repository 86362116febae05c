// SPDX-License-Identifier: Apache-2.0
// Products of rows by packed panels, as attention has them: by tiles, or by matrix registers of split floats.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide.h"
#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/split_floats.h"

namespace lathe::cpu::attention {

// to[r] = row r of A x the panel
struct RowsByPanel {
  const float* const* a;
  int64_t a_distance;  // floats from a row to the next; 0 = they differ
  int rows;
  int64_t depth;
  const float* b;
  int64_t b_stride;
  int columns;
  float* to;
  int64_t to_stride;
};

class TileProducts {
 public:
  // `configured`: see Tile.
  TileProducts(const gemm::TileTable& tiles, int* configured) : tiles_(tiles), configured_(configured) {}

  int most_rows(int columns) const { return tiles_.max_rows[vectors_of(columns) - 1]; }

  void multiply(const RowsByPanel& product) const {
    const gemm::Tap tap{0, 0, static_cast<int32_t>(product.depth), 0};
    gemm::Tile tile{};
    tile.a_distance = product.a_distance * static_cast<int64_t>(sizeof(float));
    tile.taps = &tap;
    tile.tap_count = 1;
    tile.b_stride = product.b_stride;
    tile.partial_stride = product.to_stride;
    tile.store_partial = true;
    tile.b_rows = product.depth;
    tile.configured = configured_;
    const int step = tiles_.vectors * tiles_.lanes;
    for (int c = 0; c < product.columns; c += step) {
      tile.columns = std::min(step, product.columns - c);
      tile.b = product.b + c;
      const int vectors = vectors_of(tile.columns), most = tiles_.max_rows[vectors - 1];
      for (int r = 0; r < product.rows; r += most) {
        tile.rows = std::min(most, product.rows - r);
        tile.a_rows = product.a + r;
        tile.partial = product.to + r * product.to_stride + c;
        tiles_.functions[vectors - 1][tile.rows - 1](tile);
      }
    }
  }

 private:
  int vectors_of(int columns) const { return std::min(ceil_div(columns, tiles_.lanes), tiles_.vectors); }

  const gemm::TileTable& tiles_;
  int* const configured_;
};

// Rows of A in groups of `height`, and panels of B, both split. Two groups are multiplied together.
class SplitProduct {
 public:
  SplitProduct(const gemm::Panels& panels, float* terms_of_a, float* terms_of_b, int* configured)
      : panels_(panels), b_column_(column_floats(panels.k)), a_(terms_of_a), b_(terms_of_b), configured_(configured) {}

  // Floats that terms of so many rows of A take, or of so many columns of B.
  static int64_t floats(int64_t count, int64_t k) {
    return round_up<int64_t>(count, gemm::kMatrixRegisterRows) * column_floats(k);
  }

  // Panels [first, last) of B.
  void split_panels(const float* packed, int64_t first, int64_t last) const {
    for (int64_t p = first; p < last; ++p)
      for_chunks(p, [&](int column, int halves, float* terms) {
        functions().split_columns(packed + panels_.offset(p) + column, panels_.stride(p), panels_.k,
                                  steps_of(panels_.k), halves, terms);
      });
  }

  // `k` elements of each row, from its `first` on.
  void split_rows(const float* const* rows, int64_t count, int height, int64_t first, int64_t k) {
    height_ = height, steps_ = steps_of(k);
    const int64_t block = int64_t{height} * gemm::kMatrixRegisterRows;
    for (int64_t r = 0; r < round_up<int64_t>(count, height); ++r)
      functions().split_row(rows[std::min(r, count - 1)] + first, r < count ? k : 0, steps_,
                            group_at(r / height) + r % height * gemm::kMatrixRegisterRows, block);
  }

  // Along K: the first row of B, that of a step; how many; and how many are split together.
  struct Depth {
    int64_t first, count, block;
  };
  // All of up to two groups of rows by all panels, whose sums are `panel_floats` apart. Blocks of K, so that the terms
  // of A stay near.
  void multiply_all(const float* const* rows, int64_t count, int height, Depth depth, float* to, int64_t panel_floats) {
    int64_t k = 0;
    do {
      split_rows(rows, count, height, k, std::min(depth.block, depth.count - k));
      for (int64_t p = 0; p < panels_.count(); ++p)
        multiply(0, count > height, p, depth.first + k, k > 0, to + p * panel_floats, panels_.width);
      k += depth.block;
    } while (k < depth.count);
  }

  // The rows of a group, and of the next if they are `two`, by B's panel from its row `first` on, which is the first of
  // a step. Writes all rows of the groups, and all columns of the panel's stride; `adds`: to what is there.
  void multiply(int64_t group, bool two, int64_t panel, int64_t first, bool adds, float* to, int64_t to_stride) const {
    gemm::SplitTile tile{};
    tile.a = group_at(group);
    tile.a_next = group_at(1) - group_at(0);
    tile.height = height_;
    tile.blocks = two ? 2 : 1;
    tile.steps = steps_;
    tile.stride = to_stride;
    tile.adds = adds;
    tile.configured = configured_;
    for_chunks(panel, [&](int column, int halves, float* terms) {
      tile.b = terms + first * halves * gemm::kMatrixRegisterRows * gemm::kTerms / 2;
      tile.halves = halves;
      tile.sums = to + column;
      functions().multiply(tile);
    });
  }

 private:
  static const gemm::SplitFunctions& functions() { return *gemm::usable_split_functions(); }
  static int64_t steps_of(int64_t k) { return ceil_div(k, gemm::kSplitDepth); }
  static int64_t column_floats(int64_t k) { return steps_of(k) * gemm::kSplitDepth * gemm::kTerms / 2; }
  float* group_at(int64_t group) const { return a_ + group * height_ * steps_ * gemm::kSplitDepth * gemm::kTerms / 2; }

  // Calls f(first column, halves, terms) for the chunks of a panel.
  template <class F>
  void for_chunks(int64_t panel, F&& f) const {
    const int stride = panels_.stride(panel);
    for (int c = 0; c < stride; c += static_cast<int>(gemm::kSplitColumns))
      f(c, std::min(static_cast<int>(gemm::kSplitColumns), stride - c) / gemm::kMatrixRegisterRows,
        b_ + (panel * panels_.width + c) * b_column_);
  }

  const gemm::Panels& panels_;
  const int64_t b_column_;
  float *const a_, *const b_;
  int* const configured_;
  int height_ = 1;
  int64_t steps_ = 0;
};

}  // namespace lathe::cpu::attention
