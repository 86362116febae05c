// SPDX-License-Identifier: Apache-2.0
// Which sizes a block finds out, so that they are new in each round of a loop.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace lathe::plan {

struct BlockSymbols {
  std::vector<SymbolId> inside;   // of params, and of what the steps of its bodies make, blocks within included
  std::vector<SymbolId> outputs;  // dimensions of values that move out, stacked ones apart, that are such a symbol
};

// By step; empty for those that are no blocks. Symbols are computed ones that nothing before the block has found out.
std::vector<BlockSymbols> find_block_symbols(const Plan& plan);

}  // namespace lathe::plan
