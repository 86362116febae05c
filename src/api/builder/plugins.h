// SPDX-License-Identifier: Apache-2.0
// What a build asks plugins once the sizes of the profiles are known.
#pragma once

#include "api/network/network.h"
#include "lowering/build.h"

namespace lathe::api {

// Configures the plugin of each layer for each profile, has its tactics measured, and writes what it answers into the
// graph's nodes: tactic, workspace, aliases, fields.
Result<> settle_plugins(const NetworkDefinition& network, ir::Graph& graph, const BuildOptions& options,
                        bool allows_aliases);

}  // namespace lathe::api
