// SPDX-License-Identifier: Apache-2.0
// What a plan holds of a network besides its graph: debug tensors, and the metadata of layers.
#pragma once

#include "api/network/network.h"
#include "plan/plan.h"

namespace lathe::api {

// A copy of the graph, in which debug tensors are outputs; those that were none are the last.
Result<ir::Graph> graph_with_debug_outputs(NetworkDefinition& network);
Result<> note_for_runtime(const NetworkDefinition& network, plan::Plan& plan);

}  // namespace lathe::api
