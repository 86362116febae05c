// SPDX-License-Identifier: Apache-2.0
// Where contexts are created, of engines of every generation of the interface.
#pragma once

#include <memory>
#include <type_traits>

#include "base/log.h"
#include "wrapper/interface_features.h"
#include "wrapper/kernel_store.h"
#include "wrapper/settings.h"

namespace lathe::wrapper {

// Sets what the interface has; the rest has no effect, and each such setting is said once, when it is not the default.
template <class Config>
void set_strategies(Config& config, const EngineSettings& settings, Log& log) {
  if constexpr (HasSpecialization<Config>) {
    using Strategy = decltype(config.getDynamicShapesKernelSpecializationStrategy());
    const auto strategy = static_cast<Strategy>(settings.specialization);
    if (config.getDynamicShapesKernelSpecializationStrategy() != strategy)
      config.setDynamicShapesKernelSpecializationStrategy(strategy);
  } else if (settings.specialization != Specialization::lazy) {
    log.write(Severity::warning, "this interface specializes no kernels: the strategy has no effect");
  }
  if constexpr (HasGraphStrategy<Config>) {
    using Strategy = decltype(config.getCudaGraphStrategy());
    const auto strategy = static_cast<Strategy>(settings.graphs);
    if (config.getCudaGraphStrategy() != strategy && !config.setCudaGraphStrategy(strategy))
      log.write(Severity::warning, "the runtime does not take the CUDA graph strategy: no graphs are captured");
  } else if (settings.runtime_captures()) {
    log.write(Severity::warning, "this interface captures no CUDA graphs: the strategy has no effect");
  }
}

// With IRuntimeConfig: it and the cache live as long as the maker, which contexts must not outlive.
template <class Engine>
class ContextMaker {
  using Config = typename ConfigOf<Engine>::Type;
  using Strategy = nvinfer1::ExecutionContextAllocationStrategy;

 public:
  using Context = std::remove_pointer_t<decltype(std::declval<Engine&>().createExecutionContext(Strategy{}))>;

  // The kernels of the file, which the next context finds; nothing to do without a path.
  void load_cache(Engine& engine, const EngineSettings& settings, Log& log) {
    if constexpr (HasRuntimeConfig<Engine>) {
      if constexpr (HasRuntimeCache<Config>) {
        if (!settings.cache_path.empty() && ensure_config(engine)) store_.open(settings.cache_path, *config_, log);
        return;
      }
    }
    if (!settings.cache_path.empty())
      log.print(Severity::warning, "this interface has no runtime cache: '{}' is not used", settings.cache_path);
  }

  void save_cache(Log& log) noexcept {
    if constexpr (HasRuntimeConfig<Engine>) {
      if constexpr (HasRuntimeCache<Config>) {
        if (config_) store_.save(*config_, log);
      }
    }
  }

  // Saves what was compiled, then sets what contexts are to have, then creates one. Null on failure, which the engine
  // has reported.
  std::unique_ptr<Context> create(Engine& engine, ResourceAllocation allocation, const EngineSettings& settings,
                                  Log& log) {
    const Strategy strategy = allocation == ResourceAllocation::kDYNAMIC ? Strategy::kUSER_MANAGED : Strategy::kSTATIC;
    save_cache(log);
    if constexpr (HasRuntimeConfig<Engine>) {
      if (!ensure_config(engine)) return nullptr;
      config_->setExecutionContextAllocationStrategy(strategy);
      set_strategies(*config_, settings, said_ ? null_log() : log);
      said_ = true;
      if constexpr (HasRuntimeCache<Config>) {
        if (store_.cache() && !config_->setRuntimeCache(*store_.cache())) return nullptr;
      }
      return std::unique_ptr<Context>(engine.createExecutionContext(config_.get()));
    } else {
      set_strategies(engine, settings, said_ ? null_log() : log);
      said_ = true;
      return std::unique_ptr<Context>(engine.createExecutionContext(strategy));
    }
  }

 private:
  struct Nothing {};
  template <class T>
  struct StoreOf {
    using Type = Nothing;
  };
  template <class T>
  requires HasRuntimeCache<T>
  struct StoreOf<T> {
    using Type = KernelStore<T>;
  };

  bool ensure_config(Engine& engine) {
    if (!config_) config_.reset(engine.createRuntimeConfig());
    return config_ != nullptr;
  }

  std::unique_ptr<std::conditional_t<HasRuntimeConfig<Engine>, Config, Nothing>> config_;
  bool said_ = false;  // what has no effect
  [[no_unique_address]] typename StoreOf<Config>::Type store_;
};

}  // namespace lathe::wrapper
