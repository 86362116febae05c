// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/runtime/cuda_engine.h"

namespace lathe::api {

class RuntimeConfig final : public nv::IRuntimeConfig, public nv::apiv::VRuntimeConfig {
 public:
  explicit RuntimeConfig(std::shared_ptr<EngineCore> core, ContextSettings settings = {})
      : settings(std::move(settings)), core_(std::move(core)) {
    mImpl = this;
  }
  ~RuntimeConfig() noexcept override = default;
  Result<Exclusive::Turn> look() const { return use_.take(Exclusive::Call::looks); }  // while it is read

  ContextSettings settings;

  nv::IRuntimeConfig* getPImpl() noexcept override { return this; }
  void setExecutionContextAllocationStrategy(nv::ExecutionContextAllocationStrategy strategy) noexcept override;
  nv::ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept override {
    return settings.allocation;
  }
  nv::IRuntimeCache* createRuntimeCache() const noexcept override;
  bool setRuntimeCache(const nv::IRuntimeCache& cache) noexcept override;
  nv::IRuntimeCache* getRuntimeCache() const noexcept override { return settings.cache; }
  void setDynamicShapesKernelSpecializationStrategy(
      nv::DynamicShapesKernelSpecializationStrategy strategy) noexcept override;
  nv::DynamicShapesKernelSpecializationStrategy getDynamicShapesKernelSpecializationStrategy() const noexcept override {
    return settings.specialization;
  }
  bool setCudaGraphStrategy(nv::CudaGraphStrategy strategy) noexcept override;
  nv::CudaGraphStrategy getCudaGraphStrategy() const noexcept override {
    return settings.graphs.value_or(nv::CudaGraphStrategy::kDISABLED);
  }

 private:
  Entry changing() const { return {*core_->reporter, use_}; }

  std::shared_ptr<EngineCore> core_;
  mutable Exclusive use_{"runtime configuration"};
  SettingNotices notices_;
};

}  // namespace lathe::api
