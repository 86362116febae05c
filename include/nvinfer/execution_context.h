// SPDX-License-Identifier: Apache-2.0
// Running an engine, and looking into it. Include NvInferRuntime.h instead.
#ifndef NVINFER_EXECUTION_CONTEXT_H
#define NVINFER_EXECUTION_CONTEXT_H

#include "nvinfer/engine.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// One inference at a time: shapes, addresses, scratch memory. One thread at a time. Functions taking a tensor name
// return false, nullptr or nbDims -1 when there is no such input or output. The caller deletes it when no enqueued
// work is left.
class IExecutionContext : public INoCopy {
 public:
  virtual ~IExecutionContext() noexcept = 0;

  // Waits after every layer and reports its errors there.
  void setDebugSync(bool sync) noexcept { mImpl->setDebugSync(sync); }
  bool getDebugSync() const noexcept { return mImpl->getDebugSync(); }

  // Not owned; nullptr detaches.
  void setProfiler(IProfiler* profiler) noexcept { mImpl->setProfiler(profiler); }
  IProfiler* getProfiler() const noexcept { return mImpl->getProfiler(); }

  const ICudaEngine& getEngine() const noexcept { return mImpl->getEngine(); }

  // Copied.
  void setName(const char* name) noexcept { mImpl->setName(name); }
  const char* getName() const noexcept { return mImpl->getName(); }

  // Scratch memory for kUSER_MANAGED contexts; at least ICudaEngine::getDeviceMemorySizeV2() bytes, 256-byte aligned.
  // nullptr takes it away; running then fails with one report, as it does with too little.
  TRT_DEPRECATED void setDeviceMemory(void* memory) noexcept { mImpl->setDeviceMemory(memory); }

  // As above, with its size in bytes checked.
  void setDeviceMemoryV2(void* memory, int64_t size) noexcept { mImpl->setDeviceMemoryV2(memory, size); }

  // In elements, per dimension, for the current shapes.
  Dims getTensorStrides(const char* tensorName) const noexcept { return mImpl->getTensorStrides(tensorName); }

  // 0 at first; -1 when none could be chosen.
  int32_t getOptimizationProfile() const noexcept { return mImpl->getOptimizationProfile(); }

  // Must lie within the current profile. False otherwise; the shape is unchanged then.
  bool setInputShape(const char* tensorName, const Dims& dims) noexcept {
    return mImpl->setInputShape(tensorName, dims);
  }

  // The shape for the current input shapes; -1 where not yet known.
  Dims getTensorShape(const char* tensorName) const noexcept { return mImpl->getTensorShape(tensorName); }

  bool allInputDimensionsSpecified() const noexcept { return mImpl->allInputDimensionsSpecified(); }

  // nullptr detaches.
  void setErrorRecorder(IErrorRecorder* recorder) noexcept { mImpl->setErrorRecorder(recorder); }
  IErrorRecorder* getErrorRecorder() const noexcept { return mImpl->getErrorRecorder(); }

  // Runs to completion. One address per tensor, in the order of ICudaEngine::getIOTensorName().
  bool executeV2(void* const* bindings) noexcept { return mImpl->executeV2(bindings); }

  // Choose a profile before setting input shapes; all shapes are unset by it.
  bool setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t stream) noexcept {
    return mImpl->setOptimizationProfileAsync(profileIndex, stream);
  }

  // Whether enqueueV3() itself reports to the profiler, waiting for the work (default), or reportToProfiler() does.
  void setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept { mImpl->setEnqueueEmitsProfile(enqueueEmitsProfile); }
  bool getEnqueueEmitsProfile() const noexcept { return mImpl->getEnqueueEmitsProfile(); }

  // Reports the last run; false when there was none or no profiler is set.
  bool reportToProfiler() const noexcept { return mImpl->reportToProfiler(); }

  // Device memory, 256-byte aligned; host memory for kHOST tensors. Kept until set again. For CPU engines device
  // memory is host memory and any alignment will do.
  bool setTensorAddress(const char* tensorName, void* data) noexcept {
    return mImpl->setTensorAddress(tensorName, data);
  }
  const void* getTensorAddress(const char* tensorName) const noexcept { return mImpl->getTensorAddress(tensorName); }

  // As above, checking that the tensor is an output or an input.
  bool setOutputTensorAddress(const char* tensorName, void* data) noexcept {
    return mImpl->setOutputTensorAddress(tensorName, data);
  }
  bool setInputTensorAddress(const char* tensorName, const void* data) noexcept {
    return mImpl->setInputTensorAddress(tensorName, data);
  }

  // nullptr when the tensor is no output.
  void* getOutputTensorAddress(const char* tensorName) const noexcept {
    return mImpl->getOutputTensorAddress(tensorName);
  }

  // Completes all shapes. 0 on success; n > 0: as many inputs lack shape or address, the first nbMaxNames of them are
  // named; -1 on error.
  int32_t inferShapes(int32_t nbMaxNames, const char** tensorNames) noexcept {
    return mImpl->inferShapes(nbMaxNames, tensorNames);
  }

  // Bytes of scratch memory for the current shapes; 0 on error. For kUSER_MANAGED contexts.
  size_t updateDeviceMemorySizeForShapes() noexcept { return mImpl->updateDeviceMemorySizeForShapes(); }

  // Recorded once inputs may be overwritten; nullptr for none.
  bool setInputConsumedEvent(cudaEvent_t event) noexcept { return mImpl->setInputConsumedEvent(event); }
  cudaEvent_t getInputConsumedEvent() const noexcept { return mImpl->getInputConsumedEvent(); }

  // Gives memory for an output whose size is found while running; nullptr detaches. Not owned.
  bool setOutputAllocator(const char* tensorName, IOutputAllocator* outputAllocator) noexcept {
    return mImpl->setOutputAllocator(tensorName, outputAllocator);
  }
  IOutputAllocator* getOutputAllocator(const char* tensorName) const noexcept {
    return mImpl->getOutputAllocator(tensorName);
  }

  // Upper bound in bytes for the current shapes; -1 when there is none or no such output.
  int64_t getMaxOutputSize(const char* tensorName) const noexcept { return mImpl->getMaxOutputSize(tensorName); }

  // For scratch memory sized while running; nullptr for the engine's allocator. Not owned.
  bool setTemporaryStorageAllocator(IGpuAllocator* allocator) noexcept {
    return mImpl->setTemporaryStorageAllocator(allocator);
  }
  IGpuAllocator* getTemporaryStorageAllocator() const noexcept { return mImpl->getTemporaryStorageAllocator(); }

  // Queues one inference on `stream` and returns. With a CPU engine, or a null stream there, it runs to completion.
  // False on failure.
  bool enqueueV3(cudaStream_t stream) noexcept { return mImpl->enqueueV3(stream); }

  // Bytes of L2 cache set aside for activations; 0 by default.
  void setPersistentCacheLimit(size_t size) noexcept { mImpl->setPersistentCacheLimit(size); }
  size_t getPersistentCacheLimit() const noexcept { return mImpl->getPersistentCacheLimit(); }

  // At most the verbosity of the build.
  bool setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept { return mImpl->setNvtxVerbosity(verbosity); }
  ProfilingVerbosity getNvtxVerbosity() const noexcept { return mImpl->getNvtxVerbosity(); }

  // Streams to use besides the one enqueued on; default ones are made when fewer than needed are given.
  void setAuxStreams(cudaStream_t* auxStreams, int32_t nbStreams) noexcept {
    mImpl->setAuxStreams(auxStreams, nbStreams);
  }

  // Not owned; nullptr detaches.
  bool setDebugListener(IDebugListener* listener) noexcept { return mImpl->setDebugListener(listener); }
  IDebugListener* getDebugListener() noexcept { return mImpl->getDebugListener(); }

  // Off by default, for tensors marked with INetworkDefinition::markDebug().
  bool setTensorDebugState(const char* name, bool flag) noexcept { return mImpl->setTensorDebugState(name, flag); }
  bool getDebugState(const char* name) const noexcept { return mImpl->getDebugState(name); }

  // What the context was made with. The caller deletes it.
  IRuntimeConfig* getRuntimeConfig() const noexcept { return mImpl->getRuntimeConfig(); }

  bool setAllTensorsDebugState(bool flag) noexcept { return mImpl->setAllTensorsDebugState(flag); }

  // For tensors that survived fusion, after INetworkDefinition::markUnfusedTensorsAsDebugTensors().
  bool setUnfusedTensorsDebugState(bool flag) noexcept { return mImpl->setUnfusedTensorsDebugState(flag); }
  bool getUnfusedTensorsDebugState() const noexcept { return mImpl->getUnfusedTensorsDebugState(); }

  // An ncclComm_t for collective layers; nullptr detaches.
  bool setCommunicator(void* communicator) noexcept { return mImpl->setCommunicator(communicator); }

  // Whether the next enqueueV3() on this stream may be captured in a CUDA graph by the caller. False on CPUs, and where
  // sizes or steps depend on data, a step runs on the host or the shapes are not set.
  bool isStreamCapturable(cudaStream_t stream) const noexcept { return mImpl->isStreamCapturable(stream); }

#if NV_TENSORRT_MAJOR < 11
  // As allInputDimensionsSpecified(), for values of shape tensors.
  TRT_DEPRECATED bool allInputShapesSpecified() const noexcept { return mImpl->allInputShapesSpecified(); }
#endif

 protected:
  apiv::VExecutionContext* mImpl;
};
inline IExecutionContext::~IExecutionContext() noexcept = default;

// Describes the layers of an engine, in as much detail as the build kept (IBuilderConfig::setProfilingVerbosity). Not
// thread-safe. The caller deletes it.
class IEngineInspector : public INoCopy {
 public:
  virtual ~IEngineInspector() noexcept = 0;

  // Show the shapes of this context; nullptr for none. Not owned.
  bool setExecutionContext(const IExecutionContext* context) noexcept { return mImpl->setExecutionContext(context); }
  const IExecutionContext* getExecutionContext() const noexcept { return mImpl->getExecutionContext(); }

  // The string is valid until the next call. "" or an error object when the index is out of range.
  const char* getLayerInformation(int32_t layerIndex, LayerInformationFormat format) const noexcept {
    return mImpl->getLayerInformation(layerIndex, format);
  }
  const char* getEngineInformation(LayerInformationFormat format) const noexcept {
    return mImpl->getEngineInformation(format);
  }

  // nullptr detaches.
  void setErrorRecorder(IErrorRecorder* recorder) noexcept { mImpl->setErrorRecorder(recorder); }
  IErrorRecorder* getErrorRecorder() const noexcept { return mImpl->getErrorRecorder(); }

 protected:
  apiv::VEngineInspector* mImpl;
};
inline IEngineInspector::~IEngineInspector() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_EXECUTION_CONTEXT_H
