// SPDX-License-Identifier: Apache-2.0
// Plugins of the V2 family. Deprecated in favour of IPluginV3, but the most common in the field.
#ifndef NV_INFER_RUNTIME_PLUGIN_H
#define NV_INFER_RUNTIME_PLUGIN_H

#include "NvInferPluginBase.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

enum class TensorFormat : int32_t;

namespace v_1_0 {
class IGpuAllocator;
}  // namespace v_1_0
using IGpuAllocator = v_1_0::IGpuAllocator;

using PluginFormat = TensorFormat;

// Set in the version byte of plugins that Python implements.
static constexpr int32_t kPLUGIN_VERSION_PYTHON_BIT = 0x40;

struct PluginTensorDesc {
  Dims dims;
  DataType type;
  TensorFormat format;
  float scale;  // of kINT8 tensors
};

enum class PluginVersion : uint8_t {
  kV2 TRT_DEPRECATED_ENUM = 0,
  kV2_EXT TRT_DEPRECATED_ENUM = 1,
  kV2_IOEXT TRT_DEPRECATED_ENUM = 2,
  kV2_DYNAMICEXT TRT_DEPRECATED_ENUM = 3,
  kV2_DYNAMICEXT_PYTHON TRT_DEPRECATED_ENUM = kPLUGIN_VERSION_PYTHON_BIT | 3,
};

enum class PluginCreatorVersion : int32_t {
  kV1 TRT_DEPRECATED_ENUM = 0,
  kV1_PYTHON TRT_DEPRECATED_ENUM = kPLUGIN_VERSION_PYTHON_BIT,
};

// A layer that the application implements; root of the V2 family. The library works on clones, calls initialize()
// before the first and terminate() after the last enqueue(), and destroy() to free. Functions returning int32_t report
// success with 0. Implementations must be safe to clone and enqueue from several threads on distinct clones.
class TRT_DEPRECATED IPluginV2 {
 public:
  // Highest byte: PluginVersion; lower three: NV_TENSORRT_VERSION. Not to be overridden by applications.
  virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }

  // Together these two, and the namespace, find the creator again.
  virtual const AsciiChar* getPluginType() const noexcept = 0;
  virtual const AsciiChar* getPluginVersion() const noexcept = 0;

  virtual int32_t getNbOutputs() const noexcept = 0;
  virtual Dims getOutputDimensions(int32_t index, const Dims* inputs, int32_t nbInputDims) noexcept = 0;
  virtual bool supportsFormat(DataType type, PluginFormat format) const noexcept = 0;
  virtual void configureWithFormat(const Dims* inputDims, int32_t nbInputs, const Dims* outputDims, int32_t nbOutputs,
                                   DataType type, PluginFormat format, int32_t maxBatchSize) noexcept = 0;

  virtual int32_t initialize() noexcept = 0;
  virtual void terminate() noexcept = 0;

  // Bytes of scratch memory that enqueue() gets as `workspace`.
  virtual size_t getWorkspaceSize(int32_t maxBatchSize) const noexcept = 0;

  // Queues the work on `stream` and returns without waiting.
  virtual int32_t enqueue(int32_t batchSize, const void* const* inputs, void* const* outputs, void* workspace,
                          cudaStream_t stream) noexcept = 0;

  // serialize() writes exactly getSerializationSize() bytes.
  virtual size_t getSerializationSize() const noexcept = 0;
  virtual void serialize(void* buffer) const noexcept = 0;

  virtual void destroy() noexcept = 0;
  virtual IPluginV2* clone() const noexcept = 0;

  virtual void setPluginNamespace(const AsciiChar* pluginNamespace) noexcept = 0;
  virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

  IPluginV2() = default;
  virtual ~IPluginV2() noexcept = default;

 protected:
  IPluginV2(const IPluginV2&) = default;
  IPluginV2(IPluginV2&&) = default;
  IPluginV2& operator=(const IPluginV2&) & = default;
  IPluginV2& operator=(IPluginV2&&) & = default;
};

// Adds output types and broadcast information.
class TRT_DEPRECATED IPluginV2Ext : public IPluginV2 {
 public:
  virtual DataType getOutputDataType(int32_t index, const DataType* inputTypes, int32_t nbInputs) const noexcept = 0;

#if NV_TENSORRT_MAJOR < 11
  virtual bool isOutputBroadcastAcrossBatch(int32_t outputIndex, const bool* inputIsBroadcasted,
                                            int32_t nbInputs) const noexcept = 0;
  virtual bool canBroadcastInputAcrossBatch(int32_t inputIndex) const noexcept = 0;
#endif
  virtual void configurePlugin(const Dims* inputDims, int32_t nbInputs, const Dims* outputDims, int32_t nbOutputs,
                               const DataType* inputTypes, const DataType* outputTypes, const bool* inputIsBroadcast,
                               const bool* outputIsBroadcast, PluginFormat floatFormat,
                               int32_t maxBatchSize) noexcept = 0;

  IPluginV2Ext() = default;
  ~IPluginV2Ext() override = default;

  // Handles of the context that will run this clone; null where the library has none.
  virtual void attachToContext(cudnnContext*, cublasContext*, IGpuAllocator*) noexcept {}
  virtual void detachFromContext() noexcept {}

  IPluginV2Ext* clone() const noexcept override = 0;

 protected:
  IPluginV2Ext(const IPluginV2Ext&) = default;
  IPluginV2Ext(IPluginV2Ext&&) = default;
  IPluginV2Ext& operator=(const IPluginV2Ext&) & = default;
  IPluginV2Ext& operator=(IPluginV2Ext&&) & = default;

  int32_t getTensorRTVersion() const noexcept override {
    return (static_cast<int32_t>(PluginVersion::kV2_EXT) << 24) | (NV_TENSORRT_VERSION & 0xFFFFFF);
  }

  // Replaced by configurePlugin().
  void configureWithFormat(const Dims*, int32_t, const Dims*, int32_t, DataType, PluginFormat,
                           int32_t) noexcept override {}
};

// Adds a type and format per input and output.
class TRT_DEPRECATED IPluginV2IOExt : public IPluginV2Ext {
 public:
  virtual void configurePlugin(const PluginTensorDesc* in, int32_t nbInput, const PluginTensorDesc* out,
                               int32_t nbOutput) noexcept = 0;

  // Whether inOut[pos] suits the plugin, given inOut[0..pos-1]; inputs come before outputs.
  virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc* inOut, int32_t nbInputs,
                                         int32_t nbOutputs) const noexcept = 0;

  IPluginV2IOExt() = default;
  ~IPluginV2IOExt() override = default;

 protected:
  IPluginV2IOExt(const IPluginV2IOExt&) = default;
  IPluginV2IOExt(IPluginV2IOExt&&) = default;
  IPluginV2IOExt& operator=(const IPluginV2IOExt&) & = default;
  IPluginV2IOExt& operator=(IPluginV2IOExt&&) & = default;

  int32_t getTensorRTVersion() const noexcept override {
    return (static_cast<int32_t>(PluginVersion::kV2_IOEXT) << 24) | (NV_TENSORRT_VERSION & 0xFFFFFF);
  }

 private:
  // Replaced by the functions above.
  void configurePlugin(const Dims*, int32_t, const Dims*, int32_t, const DataType*, const DataType*, const bool*,
                       const bool*, PluginFormat, int32_t) noexcept final {}
  bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }
};

namespace v_1_0 {

// Makes plugins of the V2 family. Owned by the application; must outlive its registration.
class TRT_DEPRECATED IPluginCreator : public IPluginCreatorInterface {
 public:
  virtual const AsciiChar* getPluginName() const noexcept = 0;
  virtual const AsciiChar* getPluginVersion() const noexcept = 0;

  // The fields that createPlugin() understands.
  virtual const PluginFieldCollection* getFieldNames() noexcept = 0;

  // nullptr on failure; the caller frees the result with destroy().
  virtual IPluginV2* createPlugin(const AsciiChar* name, const PluginFieldCollection* fc) noexcept = 0;

  // Makes a plugin from the bytes that serialize() wrote.
  virtual IPluginV2* deserializePlugin(const AsciiChar* name, const void* serialData, size_t serialLength) noexcept = 0;

  virtual void setPluginNamespace(const AsciiChar* pluginNamespace) noexcept = 0;
  virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

  IPluginCreator() = default;
  ~IPluginCreator() override = default;

 protected:
  IPluginCreator(const IPluginCreator&) = default;
  IPluginCreator(IPluginCreator&&) = default;
  IPluginCreator& operator=(const IPluginCreator&) & = default;
  IPluginCreator& operator=(IPluginCreator&&) & = default;

 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN CREATOR_V1", 1, 0}; }
};

}  // namespace v_1_0

using IPluginCreator = v_1_0::IPluginCreator;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NV_INFER_RUNTIME_PLUGIN_H
