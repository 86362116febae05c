// SPDX-License-Identifier: Apache-2.0
// What a context keeps of a block.
#pragma once

#include "runtime/buffer_swaps.h"
#include "runtime/stacked_value.h"
#include "runtime/value_moves.h"

namespace lathe {

struct BlockValues {
  ValueMoves moves;
  BufferSwaps swaps;
  std::vector<StackedValue> stacked;
};

}  // namespace lathe
