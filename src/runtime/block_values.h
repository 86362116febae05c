// SPDX-License-Identifier: Apache-2.0
// What a context keeps of a block.
#pragma once

#include "runtime/buffer_swaps.h"
#include "runtime/slice_views.h"
#include "runtime/stacked_value.h"
#include "runtime/value_moves.h"

namespace lathe {

struct BlockValues {
  ValueMoves moves;
  BufferSwaps swaps;
  SliceViews views;
  std::vector<StackedValue> stacked;
};

// Puts buffers back when a loop has ended, or failed.
class RestoredBuffers {
 public:
  explicit RestoredBuffers(BlockValues& values) : values_(values) {}
  RestoredBuffers(const RestoredBuffers&) = delete;
  ~RestoredBuffers() {
    values_.swaps.restore();
    values_.views.restore();
  }

 private:
  BlockValues& values_;
};

}  // namespace lathe
