// SPDX-License-Identifier: Apache-2.0
// What shape rules rely on, against the profiles: proven, or used to narrow symbols, or left for the plan to check.
#pragma once

#include "build/build.h"

namespace lathe {

// Every type of the graph is inferred anew from what the profiles promise: symbols get the range of all profiles,
// dimensions that can have one value only become numbers. Fails, naming the node, where the network does not hold for
// what a profile allows. The constraints that remain go into the plan.
Result<std::vector<Constraint>> settle_shapes(ir::Graph& graph, const BuildOptions& options);

}  // namespace lathe
