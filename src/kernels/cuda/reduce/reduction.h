// SPDX-License-Identifier: Apache-2.0
// Rows that are reduced to one element each: what the tactics of reductions and of the position of an extreme share.
#pragma once

#include "kernels/cuda/index_space.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

struct RowReduction {
  IndexSpace space;    // tensor 0 is x, 1 is y; the operands of the program and of the prologue follow
  std::string header;  // that defines the type
  std::string type;    // as reduce/reductions.cuh has them
  uint32_t state_bytes = 0;
};

Matched match_rows(const Problem& problem, RowReduction reduction);

}  // namespace lathe::cuda
