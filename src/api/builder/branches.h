// SPDX-License-Identifier: Apache-2.0
// Branches of imported Ifs that only the profiles decide.
#pragma once

#include "api/network/network.h"
#include "lowering/build.h"

namespace lathe::api {

// Where an imported network holds the branch of an If that none of the profiles' sizes take, `graph`, its copy, becomes
// the model imported anew with the other. Fails when the application has changed the network since it was parsed.
// Warns of conditions that the profiles leave undecided.
Result<> take_branches(const NetworkDefinition& network, ir::Graph& graph, const BuildOptions& options);

}  // namespace lathe::api
