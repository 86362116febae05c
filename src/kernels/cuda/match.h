// SPDX-License-Identifier: Apache-2.0
// What the matches of CUDA tactics share: the order of configurations, and of what a step reads.
#pragma once

#include "tuning/tactic.h"

namespace lathe::cuda {

// Sorted by prediction; the best `most` of them.
std::vector<Config> best_first(std::vector<Config> configs, size_t most = SIZE_MAX);

// The operands of the problem's program, or of its prologues, become the emission's next inputs.
void add_operand_inputs(const Problem& problem, Emission& emission);
void add_prologue_inputs(const Problem& problem, size_t input, Emission& emission);

}  // namespace lathe::cuda
