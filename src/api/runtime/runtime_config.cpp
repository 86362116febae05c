// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/runtime_config.h"

#include "api/runtime/execution_context.h"
#include "api/runtime/runtime_cache.h"
#include "base/own_object.h"

namespace lathe::api {

void RuntimeConfig::setExecutionContextAllocationStrategy(nv::ExecutionContextAllocationStrategy strategy) noexcept {
  guarded(changing(), "IRuntimeConfig::setExecutionContextAllocationStrategy", [&]() -> Result<> {
    LATHE_TRY(notices_.consult(strategy, core_->reporter->log()));
    settings.allocation = strategy;
    return {};
  });
}

nv::IRuntimeCache* RuntimeConfig::createRuntimeCache() const noexcept {
  return guarded(changing(), "IRuntimeConfig::createRuntimeCache", static_cast<nv::IRuntimeCache*>(nullptr),
                 [&]() -> Result<nv::IRuntimeCache*> {
                   LATHE_ASSIGN(std::string environment, core_->cache_environment());
                   return new RuntimeCache(core_->reporter, std::make_shared<KernelCache>(std::move(environment)));
                 });
}

bool RuntimeConfig::setRuntimeCache(const nv::IRuntimeCache& cache) noexcept {
  return guarded(changing(), "IRuntimeConfig::setRuntimeCache", [&]() -> Result<> {
    LATHE_ASSIGN(RuntimeCache* const own, own_object<RuntimeCache>(const_cast<nv::IRuntimeCache&>(cache)));
    LATHE_TRY(core_->check_cache(*own->kernels()));
    settings.cache = own;
    settings.kernels = own->kernels();
    return {};
  });
}

void RuntimeConfig::setDynamicShapesKernelSpecializationStrategy(
    nv::DynamicShapesKernelSpecializationStrategy strategy) noexcept {
  guarded(changing(), "IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy", [&]() -> Result<> {
    LATHE_TRY(notices_.consult(strategy, core_->reporter->log()));
    settings.specialization = strategy;
    return {};
  });
}

bool RuntimeConfig::setCudaGraphStrategy(nv::CudaGraphStrategy strategy) noexcept {
  return guarded(changing(), "IRuntimeConfig::setCudaGraphStrategy", [&]() -> Result<> {
    LATHE_TRY(notices_.consult(strategy, core_->reporter->log()));
    settings.graphs = strategy;
    return {};
  });
}

nv::IRuntimeConfig* CudaEngine::createRuntimeConfig() noexcept {
  return guarded(*core_->reporter, "ICudaEngine::createRuntimeConfig", static_cast<nv::IRuntimeConfig*>(nullptr),
                 [&]() -> Result<nv::IRuntimeConfig*> {
                   ContextSettings settings;
                   settings.specialization = nv::DynamicShapesKernelSpecializationStrategy::kLAZY;
                   return new RuntimeConfig(core_, std::move(settings));
                 });
}

// The one place that makes contexts.
nv::IExecutionContext* CudaEngine::make_context(const char* where, const ContextSettings& settings) noexcept {
  return guarded(*core_->reporter, where, static_cast<nv::IExecutionContext*>(nullptr),
                 [&]() -> Result<nv::IExecutionContext*> { return ExecutionContext::make(core_, settings); });
}

nv::IExecutionContext* CudaEngine::createExecutionContext(nv::ExecutionContextAllocationStrategy strategy) noexcept {
  RuntimeConfig config(core_);
  config.RuntimeConfig::setExecutionContextAllocationStrategy(strategy);
  if (config.settings.allocation != strategy) return nullptr;  // that was reported
  return make_context("ICudaEngine::createExecutionContext", config.settings);
}

nv::IExecutionContext* CudaEngine::createExecutionContextWithRuntimeConfig(nv::IRuntimeConfig* runtimeConfig) noexcept {
  constexpr const char* kWhere = "ICudaEngine::createExecutionContext";
  if (!runtimeConfig) return make_context(kWhere, {});
  return guarded(*core_->reporter, kWhere, static_cast<nv::IExecutionContext*>(nullptr),
                 [&]() -> Result<nv::IExecutionContext*> {
                   LATHE_ASSIGN(RuntimeConfig* const config, own_object<RuntimeConfig>(*runtimeConfig));
                   LATHE_ASSIGN(const Exclusive::Turn turn, config->look());
                   return make_context(kWhere, config->settings);
                 });
}

}  // namespace lathe::api
