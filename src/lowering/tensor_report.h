// SPDX-License-Identifier: Apache-2.0
// Why each tensor of a network lies where it does: for `lathe inspect --why`.
#pragma once

#include "lowering/build.h"
#include "lowering/placement.h"

namespace lathe {

// A report of each value of the graph that is no constant, in its order: which step computes it, in whose memory and
// layout it lies and what other layouts would have cost, what was decided about it by which numbers, and which fusions
// at its ends no tactic takes.
std::vector<TensorReport> describe_tensors(const ir::Graph& graph, const std::vector<Region>& regions,
                                           const Placement& placement, const CostModel& costs,
                                           const RefusedFusions& refused);

}  // namespace lathe
