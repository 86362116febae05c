// SPDX-License-Identifier: Apache-2.0
// The builder. Include NvInfer.h instead.
#ifndef NVINFER_BUILDER_H
#define NVINFER_BUILDER_H

#include "nvinfer/builder_config.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Makes networks, configurations and plans. One thread at a time. The caller deletes it; what it made keeps alive what
// it needs. Creators return nullptr on failure.
class IBuilder : public INoCopy {
 public:
  virtual ~IBuilder() noexcept = 0;

  // 0: there are no DLA cores.
  int32_t getMaxDLABatchSize() const noexcept { return mImpl->getMaxDLABatchSize(); }
  int32_t getNbDLACores() const noexcept { return mImpl->getNbDLACores(); }

  // nullptr restores the default. Not owned.
  void setGpuAllocator(IGpuAllocator* allocator) noexcept { mImpl->setGpuAllocator(allocator); }

  // The caller deletes it.
  IBuilderConfig* createBuilderConfig() noexcept { return mImpl->createBuilderConfig(); }

  // `flags`: bit i stands for NetworkDefinitionCreationFlag i. The caller deletes it.
  INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept {
    return mImpl->createNetworkV2(flags);
  }

  // Owned by the builder.
  IOptimizationProfile* createOptimizationProfile() noexcept { return mImpl->createOptimizationProfile(); }

  // nullptr detaches. Networks made later use it, too.
  void setErrorRecorder(IErrorRecorder* recorder) noexcept { mImpl->setErrorRecorder(recorder); }
  IErrorRecorder* getErrorRecorder() const noexcept { return mImpl->getErrorRecorder(); }

  void reset() noexcept { mImpl->reset(); }

  // The plan; nullptr on failure. The caller deletes it.
  IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept {
    return mImpl->buildSerializedNetwork(network, config);
  }

  bool buildSerializedNetworkToStream(INetworkDefinition& network, IBuilderConfig& config,
                                      IStreamWriter& writer) noexcept {
    return mImpl->buildSerializedNetworkToStream(network, config, writer);
  }

  IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config,
                                      IHostMemory*& kernelText) noexcept {
    return mImpl->buildSerializedNetworkWithKernelText(network, config, kernelText);
  }

  // An engine without going through a plan. The caller deletes it.
  ICudaEngine* buildEngineWithConfig(INetworkDefinition& network, IBuilderConfig& config) noexcept {
    return mImpl->buildEngineWithConfig(network, config);
  }

  bool isNetworkSupported(const INetworkDefinition& network, const IBuilderConfig& config) const noexcept {
    return mImpl->isNetworkSupported(network, config);
  }

  ILogger* getLogger() const noexcept { return mImpl->getLogger(); }

  // At least 1 (the default). False when out of range.
  bool setMaxThreads(int32_t maxThreads) noexcept { return mImpl->setMaxThreads(maxThreads); }
  int32_t getMaxThreads() const noexcept { return mImpl->getMaxThreads(); }

  // This builder's own registry; its parent is the global one.
  IPluginRegistry& getPluginRegistry() noexcept { return mImpl->getPluginRegistry(); }

#if NV_TENSORRT_MAJOR < 11
  // Whether the target computes in the type faster than in float.
  TRT_DEPRECATED bool platformHasFastFp16() const noexcept { return mImpl->platformHasFastFp16(); }
  TRT_DEPRECATED bool platformHasFastInt8() const noexcept { return mImpl->platformHasFastInt8(); }
  TRT_DEPRECATED bool platformHasTf32() const noexcept { return mImpl->platformHasTf32(); }
#endif

 protected:
  apiv::VBuilder* mImpl;
};
inline IBuilder::~IBuilder() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_BUILDER_H
