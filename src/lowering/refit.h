// SPDX-License-Identifier: Apache-2.0
// Engines whose weights can be replaced: which constants of the network are such weights, and what the plan says of how
// its constants follow from them (docs/decisions/0020-refit.md).
#pragma once

#include "lowering/build.h"

namespace lathe {

// Marks the network's weights that can be replaced, so that passes compute of them only what they can compute anew.
// Returns all weights, refittable ones first, by index.
Result<std::vector<plan::RefitWeights>> mark_weights(ir::Graph& graph, const RefitOptions& options);

// Records the derivations of the plan's constants; when stripping, drops the bytes of derived ones.
void write_refit(BuiltPlan& built, std::vector<plan::RefitWeights> weights, const RefitOptions& options);

// Where constants are packed anew, the plan gets the device's kernel for that, if there is one.
Result<> add_packing(BuiltPlan& built, const BuildOptions& options, Modules& modules);

}  // namespace lathe
