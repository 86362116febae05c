// SPDX-License-Identifier: Apache-2.0
// Types that a configuration sets for single layers, as the passes take them.
#pragma once

#include "api/builder/builder_config.h"
#include "api/network/network.h"
#include "ir/graph.h"

namespace lathe::api {

// The types that the configuration and the layers of the network ask for.
#if NV_TENSORRT_MAJOR < 11
Result<OwnSettings> types_of(const BuilderConfig& settings, const NetworkDefinition& network);
#else  // its layers ask for none
inline Result<OwnSettings> types_of(const BuilderConfig& settings, const NetworkDefinition&) {
  return OwnSettings(settings);
}
#endif

// One pin for each layer of the network that a setting speaks of. A name that no layer has is an error.
Result<std::vector<PrecisionPin>> pins_of(const OwnSettings& settings, const ir::Graph& graph);

}  // namespace lathe::api
