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

// Owns an IPluginV2DynamicExt, and frees it by destroy(). A clone that is attached to a context is initialised, and
// terminated before it goes. Whenever shapes change it is configured with them, as the interface demands. It has no
// tactics, shape inputs or size tensors.
class V2Plugin final : public nvinfer1::IPluginV3,
                       public nvinfer1::IPluginV3OneCore,
                       public nvinfer1::IPluginV3OneBuild,
                       public nvinfer1::IPluginV3OneRuntime {
 public:
  // Refuses what is of the older classes, which know no dynamic shapes. Takes `plugin` over if it is not null.
  static Result<std::unique_ptr<V2Plugin>> own(nvinfer1::IPluginV2* plugin, const std::string& layer);
  // A plugin from what an earlier one of the creator's has serialized, which is its only field.
  static Result<std::unique_ptr<V2Plugin>> deserialize(nvinfer1::IPluginCreator& creator, const Who& who,
                                                       const nvinfer1::PluginFieldCollection& fields);
  ~V2Plugin() override;
  V2Plugin& operator=(const V2Plugin&) = delete;

  nvinfer1::IPluginV2& plugin() { return plugin_; }

  nvinfer1::InterfaceInfo getInterfaceInfo() const noexcept override { return IPluginV3OneBuild::getInterfaceInfo(); }
  nvinfer1::IPluginV3* clone() noexcept override;
  nvinfer1::IPluginCapability* getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override;
  const char* getPluginName() const noexcept override { return plugin_.getPluginType(); }
  const char* getPluginVersion() const noexcept override { return plugin_.getPluginVersion(); }
  const char* getPluginNamespace() const noexcept override;

  int32_t getNbOutputs() const noexcept override { return plugin_.getNbOutputs(); }
  int32_t getOutputDataTypes(nvinfer1::DataType* types, int32_t outputs, const nvinfer1::DataType* given,
                             int32_t inputs) const noexcept override;
  int32_t getOutputShapes(const nvinfer1::DimsExprs* given, int32_t inputs, const nvinfer1::DimsExprs* shapes,
                          int32_t num_shapes, nvinfer1::DimsExprs* results, int32_t outputs,
                          nvinfer1::IExprBuilder& builder) noexcept override;
  bool supportsFormatCombination(int32_t position, const nvinfer1::DynamicPluginTensorDesc* all, int32_t inputs,
                                 int32_t outputs) noexcept override;
  int32_t configurePlugin(const nvinfer1::DynamicPluginTensorDesc* in, int32_t inputs,
                          const nvinfer1::DynamicPluginTensorDesc* out, int32_t outputs) noexcept override;
  size_t getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* in, int32_t inputs,
                          const nvinfer1::DynamicPluginTensorDesc* out, int32_t outputs) const noexcept override;

  int32_t onShapeChange(const nvinfer1::PluginTensorDesc* in, int32_t inputs, const nvinfer1::PluginTensorDesc* out,
                        int32_t outputs) noexcept override;
  int32_t enqueue(const nvinfer1::PluginTensorDesc* in, const nvinfer1::PluginTensorDesc* out, const void* const* from,
                  void* const* to, void* workspace, cudaStream_t stream) noexcept override;
  nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext* context) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override;

 private:
  explicit V2Plugin(nvinfer1::IPluginV2DynamicExt& plugin) : plugin_(plugin) {}

  nvinfer1::IPluginV2DynamicExt& plugin_;
  bool attached_ = false, initialized_ = false;
  std::vector<std::byte> bytes_;
  nvinfer1::PluginField field_;
  nvinfer1::PluginFieldCollection fields_{};
};

#pragma GCC diagnostic pop

}  // namespace lathe::plugin
