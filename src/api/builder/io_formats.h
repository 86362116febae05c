// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs that are not row-major.
#pragma once

#include "api/network/network.h"
#include "lowering/build.h"

namespace lathe::api {

// Gives the graph's inputs and outputs the dimensions that they have in memory, with steps that make of them what the
// network knows, and the profiles of inputs likewise. Returns the formats by the tensors' names, for the runtime. The
// passes see through such steps: what computes in the application's layout reads and writes its memory.
Result<std::vector<std::pair<std::string, std::string>>> apply_formats(const NetworkDefinition& network,
                                                                       ir::Graph& graph,
                                                                       std::vector<ProfileShapes>& profiles);

}  // namespace lathe::api
