// SPDX-License-Identifier: Apache-2.0
// What products of few rows whose weights stream through registers have in common (gemv/stream.cuh).
#pragma once

#include <string>

#include "base/divide.h"
#include "device/target.h"
#include "shape/expr.h"

namespace lathe::cuda::gemv {

inline constexpr int64_t kStreamColumns = 16, kStreamPanel = 64;  // as stream.cuh has them

// A launch.
struct PanelStream {
  int64_t panel_bytes = 0;  // of weights
  int64_t slices = 1;       // of columns, as often as K is split
  int64_t panels = 1;       // of a slice
  int64_t warps = 4;        // likewise
  int64_t groups = 1;       // slices of a block
  bool is_even = true;      // all slices have so many panels
  double block_clocks = 0;  // of a block, for what it does to its rows
  double panel_clocks = 0;  // of a warp, for each of its panels

  int64_t blocks() const { return ceil_div(slices, groups); }
  int64_t ahead() const;  // panels of a warp that registers hold
  // Blocks that are to be beside each other on a multiprocessor: as many as it gets, and have room.
  int64_t beside(const Target& target) const;
  int64_t own() const;  // panels of each warp; 0 = not the same for all
  // Panels of each slice that go to the last cache meanwhile, as text: of those blocks which may be in place while the
  // launch before still runs.
  std::string cached(const Target& target) const;
  // Bytes of shared memory for `rows` rows of a slice's K (SharedRows), beside others; 0 where they would leave too few
  // blocks on a multiprocessor, and rows are read from where they lie.
  int64_t staged_bytes(int64_t rows, int64_t others, const Target& target) const;
  int64_t waves(const Target& target) const;                      // of its blocks
  double predicted_us(double bytes, const Target& target) const;  // of a launch that reads so many
};

// 1 where there are more rows, else 0.
Expr are_more(const Expr& rows, int64_t than);

}  // namespace lathe::cuda::gemv
