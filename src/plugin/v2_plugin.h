// SPDX-License-Identifier: Apache-2.0
// Plugins of the V2 family, seen as plugins of V3: nothing else here knows of them.
#pragma once

#include <memory>
#include <vector>

#include "NvInferRuntime.h"
#include "base/result.h"
#include "plugin/callback.h"

namespace lathe::plugin {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// What creators of theirs say of themselves.
inline constexpr const char* kCreatorKindV2 = "PLUGIN CREATOR_V1";

// Owns a plugin of the family, and frees it by destroy(). A clone that is attached to a context is initialised, and
// terminated before it goes. It has no tactics, shape inputs or size tensors.
class V2Plugin : public nvinfer1::IPluginV3,
                 public nvinfer1::IPluginV3OneCore,
                 public nvinfer1::IPluginV3OneBuild,
                 public nvinfer1::IPluginV3OneRuntime {
 public:
  // Takes `plugin` over, which is not null. Refuses classes that the family does not have.
  static Result<std::unique_ptr<V2Plugin>> own(nvinfer1::IPluginV2* plugin, const std::string& layer);
  // A plugin from what an earlier one of the creator's has serialized, which is its only field.
  static Result<std::unique_ptr<V2Plugin>> deserialize(nvinfer1::IPluginCreator& creator, const Who& who,
                                                       const nvinfer1::PluginFieldCollection& fields);
  ~V2Plugin() override;
  V2Plugin& operator=(const V2Plugin&) = delete;

  nvinfer1::IPluginV2& plugin() { return plugin_; }
  // The name of its class where that is told of no sizes but fixed ones; null where sizes may be dynamic.
  virtual const char* fixed_sizes_class() const { return nullptr; }

  nvinfer1::InterfaceInfo getInterfaceInfo() const noexcept override { return IPluginV3OneBuild::getInterfaceInfo(); }
  nvinfer1::IPluginV3* clone() noexcept override;
  nvinfer1::IPluginCapability* getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override;
  const char* getPluginName() const noexcept override { return plugin_.getPluginType(); }
  const char* getPluginVersion() const noexcept override { return plugin_.getPluginVersion(); }
  const char* getPluginNamespace() const noexcept override;
  int32_t getNbOutputs() const noexcept override { return plugin_.getNbOutputs(); }
  nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext* context) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override;

 protected:
  // `ext` is the same plugin; null where it is no IPluginV2Ext.
  V2Plugin(nvinfer1::IPluginV2& plugin, nvinfer1::IPluginV2Ext* ext) : plugin_(plugin), ext_(ext) {}

 private:
  nvinfer1::IPluginV2& plugin_;
  nvinfer1::IPluginV2Ext* ext_;
  bool attached_ = false, initialized_ = false;
  std::vector<std::byte> bytes_;
  nvinfer1::PluginField field_;
  nvinfer1::PluginFieldCollection fields_{};
};

#pragma GCC diagnostic pop

}  // namespace lathe::plugin
