// SPDX-License-Identifier: Apache-2.0
// A plugin of the V2 family as programs for generation 10 write it, and its creator.
#pragma once

#include <string>

#include "NvInfer.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

class DoublingPlugin final : public nvinfer1::IPluginV2IOExt {
 public:
  using Dims = nvinfer1::Dims;
  using DataType = nvinfer1::DataType;
  using Desc = nvinfer1::PluginTensorDesc;

  const char* getPluginType() const noexcept override { return "Doubling"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  int32_t getNbOutputs() const noexcept override { return 1; }
  Dims getOutputDimensions(int32_t, const Dims* inputs, int32_t) noexcept override { return inputs[0]; }
  int32_t initialize() noexcept override { return 0; }
  void terminate() noexcept override {}
  std::size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
  int32_t enqueue(int32_t, const void* const*, void* const*, void*, cudaStream_t) noexcept override { return 0; }
  std::size_t getSerializationSize() const noexcept override { return 0; }
  void serialize(void*) const noexcept override {}
  void destroy() noexcept override { delete this; }
  nvinfer1::IPluginV2Ext* clone() const noexcept override { return new DoublingPlugin; }
  void setPluginNamespace(const char*) noexcept override {}
  const char* getPluginNamespace() const noexcept override { return ""; }
  DataType getOutputDataType(int32_t, const DataType* types, int32_t) const noexcept override { return types[0]; }
  bool isOutputBroadcastAcrossBatch(int32_t, const bool*, int32_t) const noexcept override { return false; }
  bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return true; }
  void configurePlugin(const Desc*, int32_t, const Desc*, int32_t) noexcept override {}
  bool supportsFormatCombination(int32_t, const Desc*, int32_t, int32_t) const noexcept override { return true; }
};

class DoublingCreator final : public nvinfer1::IPluginCreator {
 public:
  const char* getPluginName() const noexcept override { return "Doubling"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return &fields_; }
  nvinfer1::IPluginV2* createPlugin(const char*, const nvinfer1::PluginFieldCollection*) noexcept override {
    return new DoublingPlugin;
  }
  nvinfer1::IPluginV2* deserializePlugin(const char*, const void*, std::size_t) noexcept override {
    return new DoublingPlugin;
  }
  void setPluginNamespace(const char* space) noexcept override { space_ = space; }
  const char* getPluginNamespace() const noexcept override { return space_.c_str(); }

 private:
  std::string space_;
  nvinfer1::PluginFieldCollection fields_{0, nullptr};
};
