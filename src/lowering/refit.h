// SPDX-License-Identifier: Apache-2.0
// Engines whose weights can be replaced: which constants of the network are such weights, and what the plan says of how
// its constants follow from them (docs/decisions/0020-refit.md).
#pragma once

#include "lowering/build.h"

namespace lathe {

// Marks the network's weights that can be replaced, so that passes compute of them only what they can compute anew.
// Gives all weights, those that can be replaced first, in the order of their numbers.
Result<std::vector<plan::RefitWeights>> mark_weights(ir::Graph& graph, const RefitOptions& options);

// Writes how the plan's constants follow from the weights, and takes those that do out of it where it is stripped.
void write_refit(BuiltPlan& built, std::vector<plan::RefitWeights> weights, const RefitOptions& options);

}  // namespace lathe
