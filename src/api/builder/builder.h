// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "api/network/builder_core.h"

namespace lathe {
struct DefaultTarget;
}

namespace lathe::api {

class BuilderConfig;
class NetworkDefinition;
class PlanOutput;
enum class PlanLibraries : uint8_t;

class Builder final : public nv::IBuilder, public nv::apiv::VBuilder {
 public:
  explicit Builder(std::shared_ptr<BuilderCore> core) : core_(std::move(core)) { mImpl = this; }
  ~Builder() noexcept override;

  BuilderCore& core() const { return *core_; }

  int32_t getMaxDLABatchSize() const noexcept override { return 0; }
  int32_t getNbDLACores() const noexcept override { return 0; }
  void setGpuAllocator(nv::IGpuAllocator* allocator) noexcept override;
  nv::IBuilderConfig* createBuilderConfig() noexcept override;
  nv::INetworkDefinition* createNetworkV2(nv::NetworkDefinitionCreationFlags flags) noexcept override;
  nv::IOptimizationProfile* createOptimizationProfile() noexcept override;
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { core_->reporter->set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return core_->reporter->recorder(); }
  void reset() noexcept override;
  nv::IHostMemory* buildSerializedNetwork(nv::INetworkDefinition& network,
                                          nv::IBuilderConfig& config) noexcept override;
  bool isNetworkSupported(const nv::INetworkDefinition& network,
                          const nv::IBuilderConfig& config) const noexcept override;
  nv::ILogger* getLogger() const noexcept override { return core_->reporter->logger(); }
  bool setMaxThreads(int32_t maxThreads) noexcept override;
  int32_t getMaxThreads() const noexcept override { return core_->max_threads; }
  nv::IPluginRegistry& getPluginRegistry() noexcept override { return core_->registry; }
  nv::ICudaEngine* buildEngineWithConfig(nv::INetworkDefinition& network, nv::IBuilderConfig& config) noexcept override;
  bool buildSerializedNetworkToStream(nv::INetworkDefinition& network, nv::IBuilderConfig& config,
                                      nv::IStreamWriter& writer) noexcept override;
  nv::IHostMemory* buildSerializedNetworkWithKernelText(nv::INetworkDefinition& network, nv::IBuilderConfig& config,
                                                        nv::IHostMemory*& kernelText) noexcept override;

  Result<> build(nv::INetworkDefinition& network, nv::IBuilderConfig& config, PlanOutput& output);

#if NV_TENSORRT_MAJOR < 11
  bool platformHasFastFp16() const noexcept override;
  bool platformHasFastInt8() const noexcept override;
  bool platformHasTf32() const noexcept override;
#endif

 private:
  Log& log() const { return core_->reporter->log(); }
  Result<std::vector<std::byte>> build(nv::INetworkDefinition& network, nv::IBuilderConfig& config);
  Result<> build_variants(NetworkDefinition& definition, const BuilderConfig& settings, PlanOutput& output);
  Result<> build_for(const DefaultTarget& target, NetworkDefinition& definition, const BuilderConfig& settings,
                     PlanLibraries libraries, PlanOutput& output);

  std::shared_ptr<BuilderCore> core_;
};

}  // namespace lathe::api
