// SPDX-License-Identifier: Apache-2.0
// The CPU tactics: the folders kernels/cpu/<name>/ that hold <name>_tactic.cpp; each defines
//   const Tactic& lathe::cpu::<name>_tactic();
#pragma once

#include "tuning/tactic.h"

namespace lathe::cpu {

const TacticList& cpu_tactics();

// Pieces of refusals that several tactics share; nullopt when all is well.
std::optional<std::string> refuse_non_f32(const Problem& problem);
std::optional<std::string> refuse_layout(const Operand& operand, std::string_view what);  // channel stride must be 1

}  // namespace lathe::cpu
