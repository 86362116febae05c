// SPDX-License-Identifier: Apache-2.0
// Constraints that shape rules rely on (shape/constraint.h) are checked against the profiles: each is proven, narrows
// the ranges of symbols, or goes into the plan to be checked when shapes are set.
#pragma once

#include "lowering/build.h"

namespace lathe {

// Infers every type of the graph anew from what the profiles promise: the range of a symbol is the smallest that holds
// those of all profiles, and an input dimension with only one possible value becomes a number. A constraint with one
// solution narrows its symbol, with a warning, unless a profile says otherwise: 49*batch = 49 makes the batch 1.
// Returns the constraints that are left, for the plan. Fails, naming the node, where the network cannot hold for sizes
// that a profile allows, or does not hold for its opt sizes. Removes dead nodes.
Result<std::vector<Constraint>> settle_shapes(ir::Graph& graph, const BuildOptions& options);

}  // namespace lathe
