// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/v2_plugin.h"

namespace lathe::plugin {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// An IPluginV2, IPluginV2Ext or IPluginV2IOExt, from before there were dynamic shapes. What it takes for one of a batch
// is the whole tensor, as in networks whose batch dimension is explicit: the batch size that it is told is 1. It is
// configured while building alone; what it needs later, it serializes.
class StaticV2Plugin final : public V2Plugin {
 public:
  explicit StaticV2Plugin(nvinfer1::IPluginV2& plugin)
      : V2Plugin(plugin, nullptr), plugin_(plugin), kind_(nvinfer1::PluginVersion::kV2) {}
  explicit StaticV2Plugin(nvinfer1::IPluginV2Ext& plugin)
      : V2Plugin(plugin, &plugin), plugin_(plugin), kind_(nvinfer1::PluginVersion::kV2_EXT) {}
  explicit StaticV2Plugin(nvinfer1::IPluginV2IOExt& plugin)
      : V2Plugin(plugin, &plugin), plugin_(plugin), kind_(nvinfer1::PluginVersion::kV2_IOEXT) {}

  const char* fixed_sizes_class() const override;
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

 private:
  nvinfer1::IPluginV2Ext& ext() const { return static_cast<nvinfer1::IPluginV2Ext&>(plugin_); }
  nvinfer1::IPluginV2IOExt& io_ext() const { return static_cast<nvinfer1::IPluginV2IOExt&>(plugin_); }

  nvinfer1::IPluginV2& plugin_;
  nvinfer1::PluginVersion kind_;
};

#pragma GCC diagnostic pop

}  // namespace lathe::plugin
