// SPDX-License-Identifier: Apache-2.0
#include "api/builder.h"
#include "api/builder_config.h"
#include "api/network.h"

namespace lathe::api {

Result<std::vector<std::byte>> Builder::build(nv::INetworkDefinition& network, nv::IBuilderConfig& config) {
  auto& definition = static_cast<NetworkDefinition&>(network);
  LATHE_TRY(definition.resolve_all());
  return fail(ErrorCode::invalid_state, "this library was built without the plan builder");
}

nv::ICudaEngine* Builder::buildEngineWithConfig(nv::INetworkDefinition& network, nv::IBuilderConfig& config) noexcept {
  delete buildSerializedNetwork(network, config);
  return nullptr;
}

}  // namespace lathe::api
