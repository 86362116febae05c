// SPDX-License-Identifier: Apache-2.0
// What the registry of generation 10 has besides: creators of the V2 family by their own type.
#include "plugin/registry.h"

#if NV_TENSORRT_MAJOR < 11

#include <cstring>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lathe::plugin {

namespace nv = nvinfer1;

namespace {

// Null where the creator makes plugins of another family.
nv::IPluginCreator* as_v1(nv::IPluginCreatorInterface* creator) {
  if (!creator || std::strcmp(creator->getInterfaceInfo().kind, "PLUGIN CREATOR_V1") != 0) return nullptr;
  return static_cast<nv::IPluginCreator*>(creator);
}

}  // namespace

bool Registry::registerCreator(nv::IPluginCreator& creator, const char* const pluginNamespace) noexcept {
  return registerCreator(static_cast<nv::IPluginCreatorInterface&>(creator), pluginNamespace);
}

nv::IPluginCreator* const* Registry::getPluginCreatorList(int32_t* const numCreators) const noexcept {
  const std::lock_guard lock(mutex_);
  listed_v1_.clear();
  for (nv::IPluginCreatorInterface* creator : listed_)
    if (nv::IPluginCreator* v1 = as_v1(creator)) listed_v1_.push_back(v1);
  if (numCreators) *numCreators = static_cast<int32_t>(listed_v1_.size());
  return listed_v1_.data();
}

nv::IPluginCreator* Registry::getPluginCreator(const char* const pluginName, const char* const pluginVersion,
                                               const char* const pluginNamespace) noexcept {
  return as_v1(getCreator(pluginName, pluginVersion, pluginNamespace));
}

bool Registry::deregisterCreator(const nv::IPluginCreator& creator) noexcept {
  return deregisterCreator(static_cast<const nv::IPluginCreatorInterface&>(creator));
}

}  // namespace lathe::plugin

#endif
