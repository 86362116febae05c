// SPDX-License-Identifier: Apache-2.0
// Branches of imported Ifs that only the profiles decide.
#pragma once

#include "api/network/network.h"
#include "lowering/build.h"

namespace lathe::api {

// Settles the shapes of `graph`, the network's copy. Where it holds the branch of an imported If that none of the
// profiles' sizes take, the model is imported anew with the other; that fails when the application has changed the
// network since it was parsed. Warns of conditions that the profiles leave undecided.
Result<SettledGraph> take_branches(const NetworkDefinition& network, ir::Graph graph, const BuildOptions& options);

}  // namespace lathe::api
