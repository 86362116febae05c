// SPDX-License-Identifier: Apache-2.0
// The CUDA tactics: the folders kernels/cuda/<name>/ that hold <name>_tactic.cpp; each defines
//   Matched lathe::cuda::match_<name>(const Problem& problem);
// from which cuda_tactics.cpp makes the tactic <name>, which others declare as
//   const Tactic& lathe::cuda::<name>_tactic();
#pragma once

#include "tuning/tactic.h"

namespace lathe::cuda {

// In alphabetical order, but `generic`, which runs what no other does, is last.
const TacticList& cuda_tactics();

}  // namespace lathe::cuda
