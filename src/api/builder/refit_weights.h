// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/builder/builder_config.h"
#include "api/network/network.h"
#include "lowering/build.h"

namespace lathe::api {

// What the flags of the configuration ask for, and the network's weights with the names, layers and roles by which a
// refitter knows them. `graph` is the network's, as it is built.
Result<RefitOptions> refit_options(const BuilderConfig& config, const NetworkDefinition& network,
                                   const ir::Graph& graph);

}  // namespace lathe::api
