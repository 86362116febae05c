// SPDX-License-Identifier: Apache-2.0
// Plugins with dynamic shapes: the V3 capabilities and the last of the V2 family. Include NvInferRuntime.h instead.
#ifndef NVINFER_PLUGIN_V3_H
#define NVINFER_PLUGIN_V3_H

#include "nvinfer/runtime_interfaces.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

enum class DimensionOperation : int32_t {
  kSUM = 0,
  kPROD = 1,
  kMAX = 2,
  kMIN = 3,
  kSUB = 4,
  kEQUAL = 5,  // 1 or 0
  kLESS = 6,   // 1 or 0
  kFLOOR_DIV = 7,
  kCEIL_DIV = 8,
};
template <>
struct impl::EnumMaxImpl<DimensionOperation> {
  static constexpr int32_t kVALUE = 9;
};

// A size, possibly unknown until run time. Owned by the IExprBuilder.
class IDimensionExpr : public INoCopy {
 public:
  bool isConstant() const noexcept { return mImpl->isConstant(); }

  // INT64_MIN when not constant.
  int64_t getConstantValue() const noexcept { return mImpl->getConstantValue(); }

  // True for sizes declared with IExprBuilder::declareSizeTensor().
  bool isSizeTensor() const noexcept { return mImpl->isSizeTensor(); }

 protected:
  virtual ~IDimensionExpr() noexcept = 0;
  apiv::VDimensionExpr* mImpl;
};
inline IDimensionExpr::~IDimensionExpr() noexcept = default;

// Makes expressions over sizes. Owned by the library, valid during the call that passes it.
class IExprBuilder : public INoCopy {
 public:
  // nullptr on failure, as for the next two.
  const IDimensionExpr* constant(int64_t value) noexcept { return mImpl->constant(value); }
  const IDimensionExpr* operation(DimensionOperation op, const IDimensionExpr& first,
                                  const IDimensionExpr& second) noexcept {
    return mImpl->operation(op, first, second);
  }

  // A size that the plugin computes: output `outputIndex`, a 0-D INT32 or INT64 tensor, holds it. `opt` is for tuning,
  // `upper` bounds it.
  const IDimensionExpr* declareSizeTensor(int32_t outputIndex, const IDimensionExpr& opt, const IDimensionExpr& upper) {
    return mImpl->declareSizeTensor(outputIndex, opt, upper);
  }

 protected:
  virtual ~IExprBuilder() noexcept = 0;
  apiv::VExprBuilder* mImpl;
};
inline IExprBuilder::~IExprBuilder() noexcept = default;

// Dims whose sizes are expressions over the plugin's input sizes.
class DimsExprs {
 public:
  int32_t nbDims;
  const IDimensionExpr* d[Dims::MAX_DIMS];
};

// What a plugin is configured with: the description, with dims -1 where dynamic, and the range of its dims.
struct DynamicPluginTensorDesc {
  PluginTensorDesc desc;
  Dims min;
  Dims max;
  Dims opt;
};

// V2 plugin with dynamic shapes. Deprecated: IPluginV3.
class TRT_DEPRECATED IPluginV2DynamicExt : public IPluginV2Ext {
 public:
  IPluginV2DynamicExt* clone() const noexcept override = 0;

  virtual DimsExprs getOutputDimensions(int32_t outputIndex, const DimsExprs* inputs, int32_t nbInputs,
                                        IExprBuilder& exprBuilder) noexcept = 0;

  // The library tries at most this many combinations.
  static constexpr int32_t kFORMAT_COMBINATION_LIMIT = 100;

  // Whether inOut[pos] suits the plugin, given inOut[0..pos-1]; inputs come before outputs.
  virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc* inOut, int32_t nbInputs,
                                         int32_t nbOutputs) noexcept = 0;

  virtual void configurePlugin(const DynamicPluginTensorDesc* in, int32_t nbInputs, const DynamicPluginTensorDesc* out,
                               int32_t nbOutputs) noexcept = 0;

  virtual size_t getWorkspaceSize(const PluginTensorDesc* inputs, int32_t nbInputs, const PluginTensorDesc* outputs,
                                  int32_t nbOutputs) const noexcept = 0;

  // 0 = success.
  virtual int32_t enqueue(const PluginTensorDesc* inputDesc, const PluginTensorDesc* outputDesc,
                          const void* const* inputs, void* const* outputs, void* workspace,
                          cudaStream_t stream) noexcept = 0;

 protected:
  int32_t getTensorRTVersion() const noexcept override {
    return (static_cast<int32_t>(PluginVersion::kV2_DYNAMICEXT) << 24) | (NV_TENSORRT_VERSION & 0xFFFFFF);
  }
  virtual ~IPluginV2DynamicExt() noexcept {}

#if NV_TENSORRT_MAJOR < 11
  bool isOutputBroadcastAcrossBatch(int32_t, const bool*, int32_t) const noexcept override { return false; }
  bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return true; }
#endif

 private:
  // Replaced by the functions above.
  void configurePlugin(const Dims*, int32_t, const Dims*, int32_t, const DataType*, const DataType*, const bool*,
                       const bool*, PluginFormat, int32_t) noexcept final {}
  bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }
  Dims getOutputDimensions(int32_t, const Dims*, int32_t) noexcept final { return Dims{-1, {}}; }
  size_t getWorkspaceSize(int32_t) const noexcept final { return 0; }
  int32_t enqueue(int32_t, const void* const*, void* const*, void*, cudaStream_t) noexcept final { return 1; }
};

// What an execution context offers to the plugins attached to it. Valid as long as the attached clone.
class IPluginResourceContext {
 public:
  virtual IGpuAllocator* getGpuAllocator() const noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual ~IPluginResourceContext() noexcept = 0;

 protected:
  IPluginResourceContext() = default;
  IPluginResourceContext(const IPluginResourceContext&) = default;
  IPluginResourceContext(IPluginResourceContext&&) = default;
  IPluginResourceContext& operator=(const IPluginResourceContext&) & = default;
  IPluginResourceContext& operator=(IPluginResourceContext&&) & = default;
};
inline IPluginResourceContext::~IPluginResourceContext() noexcept = default;

// V3 capabilities. Functions that return int32_t report success with 0.
namespace v_1_0 {

class IPluginV3OneCore : public IPluginCapability {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN_V3ONE_CORE", 1, 0}; }

  // Together they find the creator again; at most 1024 bytes each.
  virtual const AsciiChar* getPluginName() const noexcept = 0;
  virtual const AsciiChar* getPluginVersion() const noexcept = 0;
  virtual const AsciiChar* getPluginNamespace() const noexcept = 0;
};

class IPluginV3OneBuild : public IPluginCapability {
 public:
  static constexpr int32_t kDEFAULT_FORMAT_COMBINATION_LIMIT = 100;

  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN_V3ONE_BUILD", 1, 0}; }

  virtual int32_t configurePlugin(const DynamicPluginTensorDesc* in, int32_t nbInputs,
                                  const DynamicPluginTensorDesc* out, int32_t nbOutputs) noexcept = 0;

  virtual int32_t getOutputDataTypes(DataType* outputTypes, int32_t nbOutputs, const DataType* inputTypes,
                                     int32_t nbInputs) const noexcept = 0;

  virtual int32_t getOutputShapes(const DimsExprs* inputs, int32_t nbInputs, const DimsExprs* shapeInputs,
                                  int32_t nbShapeInputs, DimsExprs* outputs, int32_t nbOutputs,
                                  IExprBuilder& exprBuilder) noexcept = 0;

  // Whether inOut[pos] suits the plugin, given inOut[0..pos-1]; inputs come before outputs.
  virtual bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc* inOut, int32_t nbInputs,
                                         int32_t nbOutputs) noexcept = 0;

  virtual int32_t getNbOutputs() const noexcept = 0;

  // Bytes of scratch memory, for the largest shapes of the profile.
  virtual size_t getWorkspaceSize(const DynamicPluginTensorDesc*, int32_t, const DynamicPluginTensorDesc*,
                                  int32_t) const noexcept {
    return 0;
  }

  // The plugin's own tactics, positive numbers, for the builder to time. None: tactic 0 is used.
  virtual int32_t getValidTactics(int32_t*, int32_t) noexcept { return 0; }
  virtual int32_t getNbTactics() noexcept { return 0; }

  // Key of the plugin in the timing cache; nullptr keeps its times out of it.
  virtual const char* getTimingCacheID() noexcept { return nullptr; }

  virtual int32_t getFormatCombinationLimit() noexcept { return kDEFAULT_FORMAT_COMBINATION_LIMIT; }

  // Shown by the engine inspector.
  virtual const char* getMetadataString() noexcept { return nullptr; }
};

class IPluginV3OneRuntime : public IPluginCapability {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN_V3ONE_RUNTIME", 1, 0}; }

  virtual int32_t setTactic(int32_t) noexcept { return 0; }

  // Called before enqueue() whenever input shapes changed.
  virtual int32_t onShapeChange(const PluginTensorDesc* in, int32_t nbInputs, const PluginTensorDesc* out,
                                int32_t nbOutputs) noexcept = 0;

  virtual int32_t enqueue(const PluginTensorDesc* inputDesc, const PluginTensorDesc* outputDesc,
                          const void* const* inputs, void* const* outputs, void* workspace,
                          cudaStream_t stream) noexcept = 0;

  // A clone for one execution context; the library owns it.
  virtual IPluginV3* attachToContext(IPluginResourceContext* context) noexcept = 0;

  // What the creator needs to make this plugin again; owned by the plugin.
  virtual const PluginFieldCollection* getFieldsToSerialize() noexcept = 0;
};

class IPluginCreatorV3One : public IPluginCreatorInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN CREATOR_V3ONE", 1, 0}; }

  // nullptr on failure; the caller owns the result.
  virtual IPluginV3* createPlugin(const AsciiChar* name, const PluginFieldCollection* fc,
                                  TensorRTPhase phase) noexcept = 0;

  // The fields that createPlugin() understands.
  virtual const PluginFieldCollection* getFieldNames() noexcept = 0;
  virtual const AsciiChar* getPluginName() const noexcept = 0;
  virtual const AsciiChar* getPluginVersion() const noexcept = 0;
  virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

  IPluginCreatorV3One() = default;
  virtual ~IPluginCreatorV3One() = default;

 protected:
  IPluginCreatorV3One(const IPluginCreatorV3One&) = default;
  IPluginCreatorV3One(IPluginCreatorV3One&&) = default;
  IPluginCreatorV3One& operator=(const IPluginCreatorV3One&) & = default;
  IPluginCreatorV3One& operator=(IPluginCreatorV3One&&) & = default;
};

}  // namespace v_1_0

namespace v_2_0 {

class IPluginV3OneBuild : public v_1_0::IPluginV3OneBuild {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN_V3ONE_BUILD", 2, 0}; }

  // The input whose memory an output shares, or -1.
  virtual int32_t getAliasedInput(int32_t) noexcept { return -1; }
};

}  // namespace v_2_0

using IPluginV3OneCore = v_1_0::IPluginV3OneCore;
using IPluginV3OneBuild = v_1_0::IPluginV3OneBuild;
using IPluginV3OneRuntime = v_1_0::IPluginV3OneRuntime;
using IPluginV3OneBuildV2 = v_2_0::IPluginV3OneBuild;
using IPluginCreatorV3One = v_1_0::IPluginCreatorV3One;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_PLUGIN_V3_H
