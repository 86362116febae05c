// SPDX-License-Identifier: Apache-2.0
// What the registry of generation 10 has besides: creators of the V2 family by their own type.
#include "plugin/registry.h"

namespace lathe::plugin {

namespace nv = nvinfer1;

bool Registry::registerCreator(nv::IPluginCreator& creator, const char* const pluginNamespace) noexcept {
  return registerCreator(static_cast<nv::IPluginCreatorInterface&>(creator), pluginNamespace);
}

nv::IPluginCreator* const* Registry::getPluginCreatorList(int32_t* const numCreators) const noexcept {
  const std::lock_guard lock(mutex_);
  if (numCreators) *numCreators = static_cast<int32_t>(listed_v1_.size());
  return listed_v1_.data();
}

nv::IPluginCreator* Registry::getPluginCreator(const char* const pluginName, const char* const pluginVersion,
                                               const char* const pluginNamespace) noexcept {
  nv::IPluginCreatorInterface* creator = getCreator(pluginName, pluginVersion, pluginNamespace);
  return creator && makes_v2_plugins(*creator) ? static_cast<nv::IPluginCreator*>(creator) : nullptr;
}

bool Registry::deregisterCreator(const nv::IPluginCreator& creator) noexcept {
  return deregisterCreator(static_cast<const nv::IPluginCreatorInterface&>(creator));
}

}  // namespace lathe::plugin
