// SPDX-License-Identifier: Apache-2.0
// Layer kinds for which the graph has no ops yet: each call gives null and one report.
#include "api/network/network_add.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::api {

nv::IPluginV2Layer* NetworkDefinition::addPluginV2(nv::ITensor* const*, int32_t, nv::IPluginV2&) noexcept {
  return refuse<nv::IPluginV2Layer>("INetworkDefinition::addPluginV2", "plugin");
}

}  // namespace lathe::api
