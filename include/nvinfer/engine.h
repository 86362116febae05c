// SPDX-License-Identifier: Apache-2.0
// The engine. Include NvInferRuntime.h instead.
#ifndef NVINFER_ENGINE_H
#define NVINFER_ENGINE_H

#include "nvinfer/runtime_objects.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// A network ready to run. Immutable apart from refitting: const functions, and making contexts, may be called from
// several threads. The caller deletes it; contexts keep alive what they need.
class ICudaEngine : public INoCopy {
 public:
  virtual ~ICudaEngine() noexcept = 0;

  // -1 for sizes known at run time only; nbDims -1 when there is no such input or output.
  Dims getTensorShape(const char* tensorName) const noexcept { return mImpl->getTensorShape(tensorName); }

  // kFLOAT when there is no such tensor.
  DataType getTensorDataType(const char* tensorName) const noexcept { return mImpl->getTensorDataType(tensorName); }

  // Layers of the engine, after fusion.
  int32_t getNbLayers() const noexcept { return mImpl->getNbLayers(); }

  // The plan as bytes; nullptr on failure. The caller deletes it.
  IHostMemory* serialize() const noexcept { return mImpl->serialize(); }

  // nullptr on failure. The caller deletes it. One context serves one thread at a time.
  IExecutionContext* createExecutionContext(
      ExecutionContextAllocationStrategy strategy = ExecutionContextAllocationStrategy::kSTATIC) noexcept {
    return mImpl->createExecutionContext(strategy);
  }

  // kHOST for inputs and outputs whose values must be in host memory; kDEVICE when there is no such tensor.
  TensorLocation getTensorLocation(const char* tensorName) const noexcept {
    return mImpl->getTensorLocation(tensorName);
  }

  // True for inputs whose values, and outputs which, take part in shape computation.
  bool isShapeInferenceIO(const char* tensorName) const noexcept { return mImpl->isShapeInferenceIO(tensorName); }

  // kNONE when there is no such tensor.
  TensorIOMode getTensorIOMode(const char* tensorName) const noexcept { return mImpl->getTensorIOMode(tensorName); }

  // The input whose memory this output may share, or nullptr: a cache of which a part is replaced. Bind one address to
  // both, and only the part is written; of two addresses, the whole cache is copied to the output's first.
  const char* getAliasedInputTensor(const char* tensorName) const noexcept {
    return mImpl->getAliasedInputTensor(tensorName);
  }

  IExecutionContext* createExecutionContext(IRuntimeConfig* runtimeConfig) noexcept {
    return mImpl->createExecutionContextWithRuntimeConfig(runtimeConfig);
  }

  // nullptr on failure. The caller deletes it.
  IRuntimeConfig* createRuntimeConfig() noexcept { return mImpl->createRuntimeConfig(); }

  // Bytes that a context needs besides inputs and outputs, whatever shapes it gets: of any profile, and of one profile.
  // -1 when the profile sets no limit to some size: ask IExecutionContext::updateDeviceMemorySizeForShapes() then; also
  // when there is no such profile. Results whose size depends on the data are allocated beside it.
  int64_t getDeviceMemorySizeV2() const noexcept { return mImpl->getDeviceMemorySizeV2(); }
  int64_t getDeviceMemorySizeForProfileV2(int32_t profileIndex) const noexcept {
    return mImpl->getDeviceMemorySizeForProfileV2(profileIndex);
  }

  bool isRefittable() const noexcept { return mImpl->isRefittable(); }

  // Size of one vector component in bytes; -1 when the tensor is not vectorized or unknown.
  int32_t getTensorBytesPerComponent(const char* tensorName) const noexcept {
    return mImpl->getTensorBytesPerComponent(tensorName);
  }
  int32_t getTensorBytesPerComponent(const char* tensorName, int32_t profileIndex) const noexcept {
    return mImpl->getTensorBytesPerComponentV2(tensorName, profileIndex);
  }

  // Components per vector; -1 when the tensor is not vectorized or unknown.
  int32_t getTensorComponentsPerElement(const char* tensorName) const noexcept {
    return mImpl->getTensorComponentsPerElement(tensorName);
  }
  int32_t getTensorComponentsPerElement(const char* tensorName, int32_t profileIndex) const noexcept {
    return mImpl->getTensorComponentsPerElementV2(tensorName, profileIndex);
  }

  // kLINEAR when there is no such tensor. Formats may differ between profiles; the first form means profile 0.
  TensorFormat getTensorFormat(const char* tensorName) const noexcept { return mImpl->getTensorFormat(tensorName); }
  TensorFormat getTensorFormat(const char* tensorName, int32_t profileIndex) const noexcept {
    return mImpl->getTensorFormatV2(tensorName, profileIndex);
  }

  // Readable layout; "" when there is no such tensor.
  const char* getTensorFormatDesc(const char* tensorName) const noexcept {
    return mImpl->getTensorFormatDesc(tensorName);
  }
  const char* getTensorFormatDesc(const char* tensorName, int32_t profileIndex) const noexcept {
    return mImpl->getTensorFormatDescV2(tensorName, profileIndex);
  }

  // The dimension that is vectorized, or -1.
  int32_t getTensorVectorizedDim(const char* tensorName) const noexcept {
    return mImpl->getTensorVectorizedDim(tensorName);
  }
  int32_t getTensorVectorizedDim(const char* tensorName, int32_t profileIndex) const noexcept {
    return mImpl->getTensorVectorizedDimV2(tensorName, profileIndex);
  }

  // The network's name.
  const char* getName() const noexcept { return mImpl->getName(); }

  // At least 1.
  int32_t getNbOptimizationProfiles() const noexcept { return mImpl->getNbOptimizationProfiles(); }

  // nbDims -1 when the tensor is no input or the profile does not exist.
  Dims getProfileShape(const char* tensorName, int32_t profileIndex, OptProfileSelector select) const noexcept {
    return mImpl->getProfileShape(tensorName, profileIndex, select);
  }

  EngineCapability getEngineCapability() const noexcept { return mImpl->getEngineCapability(); }

  // nullptr detaches. Contexts made later use it, too.
  void setErrorRecorder(IErrorRecorder* recorder) noexcept { mImpl->setErrorRecorder(recorder); }
  IErrorRecorder* getErrorRecorder() const noexcept { return mImpl->getErrorRecorder(); }

  // Bit i stands for TacticSource i.
  TacticSources getTacticSources() const noexcept { return mImpl->getTacticSources(); }

  ProfilingVerbosity getProfilingVerbosity() const noexcept { return mImpl->getProfilingVerbosity(); }

  // nullptr on failure. The caller deletes it.
  IEngineInspector* createEngineInspector() const noexcept { return mImpl->createEngineInspector(); }

  // Inputs come first. The name is nullptr when the index is out of range.
  int32_t getNbIOTensors() const noexcept { return mImpl->getNbIOTensors(); }
  const char* getIOTensorName(int32_t index) const noexcept { return mImpl->getIOTensorName(index); }

  HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept {
    return mImpl->getHardwareCompatibilityLevel();
  }

  int32_t getNbAuxStreams() const noexcept { return mImpl->getNbAuxStreams(); }

  ISerializationConfig* createSerializationConfig() noexcept { return mImpl->createSerializationConfig(); }

  IHostMemory* serializeWithConfig(ISerializationConfig& config) const noexcept {
    return mImpl->serializeWithConfig(config);
  }

  // Bytes of weights that can be streamed in during execution; 0 without BuilderFlag::kWEIGHT_STREAMING.
  int64_t getStreamableWeightsSize() const noexcept { return mImpl->getStreamableWeightsSize(); }

  // The most bytes of the device's memory for such weights, which are copied there while a context runs as far as they
  // have no room; from 0 to getStreamableWeightsSize(), the default, or more: all stay there. False for less than 0,
  // and while contexts exist.
  bool setWeightStreamingBudgetV2(int64_t gpuMemoryBudget) noexcept {
    return mImpl->setWeightStreamingBudgetV2(gpuMemoryBudget);
  }
  int64_t getWeightStreamingBudgetV2() const noexcept { return mImpl->getWeightStreamingBudgetV2(); }

  // A budget that suits the free memory of the device, for one context.
  int64_t getWeightStreamingAutomaticBudget() const noexcept { return mImpl->getWeightStreamingAutomaticBudget(); }

  // Bytes of the device's memory that each context takes besides, of its own, under the budget; 0 = nothing is copied.
  int64_t getWeightStreamingScratchMemorySize() const noexcept { return mImpl->getWeightStreamingScratchMemorySize(); }

  bool isDebugTensor(const char* name) const noexcept { return mImpl->isDebugTensor(name); }

  // Values of a shape tensor input in a profile; nullptr when there are none.
  const int64_t* getProfileTensorValuesV2(const char* tensorName, int32_t profileIndex,
                                          OptProfileSelector select) const noexcept {
    return mImpl->getProfileTensorValuesV2(tensorName, profileIndex, select);
  }

  // -1 when it does not apply.
  int64_t getEngineStat(EngineStat stat) const noexcept { return mImpl->getEngineStat(stat); }

#if NV_TENSORRT_MAJOR < 11
  // As createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED).
  TRT_DEPRECATED IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept {
    return mImpl->createExecutionContextWithoutDeviceMemory();
  }

  // As the functions whose names end in V2; 0 where those return -1.
  TRT_DEPRECATED size_t getDeviceMemorySize() const noexcept { return mImpl->getDeviceMemorySize(); }

  // As getProfileTensorValuesV2(); nullptr, too, where a value does not fit into 32 bits.
  TRT_DEPRECATED const int32_t* getProfileTensorValues(const char* tensorName, int32_t profileIndex,
                                                       OptProfileSelector select) const noexcept {
    return mImpl->getProfileTensorValues(tensorName, profileIndex, select);
  }

  // Always false.
  TRT_DEPRECATED bool hasImplicitBatchDimension() const noexcept { return mImpl->hasImplicitBatchDimension(); }
  TRT_DEPRECATED size_t getDeviceMemorySizeForProfile(int32_t profileIndex) const noexcept {
    return mImpl->getDeviceMemorySizeForProfile(profileIndex);
  }

  // As the functions whose names end in V2: -1 is the automatic budget, 0 streams nothing.
  TRT_DEPRECATED bool setWeightStreamingBudget(int64_t gpuMemoryBudget) noexcept {
    return mImpl->setWeightStreamingBudget(gpuMemoryBudget);
  }
  TRT_DEPRECATED int64_t getWeightStreamingBudget() const noexcept { return mImpl->getWeightStreamingBudget(); }
  TRT_DEPRECATED int64_t getMinimumWeightStreamingBudget() const noexcept {
    return mImpl->getMinimumWeightStreamingBudget();
  }
#endif

 protected:
  apiv::VCudaEngine* mImpl;
};
inline ICudaEngine::~ICudaEngine() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_ENGINE_H
