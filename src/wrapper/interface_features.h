// SPDX-License-Identifier: Apache-2.0
// What a generation of the interface has, found by asking for it: names of releases and platforms say nothing of what
// their headers hold. The only place that asks.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "lathe_wrapper.h"

namespace lathe::wrapper {

template <class Engine>
concept HasRuntimeConfig = requires(Engine& engine) {
  engine.createRuntimeConfig();
};

template <class Engine>
struct ConfigOf {
  using Type = void;
};
template <HasRuntimeConfig Engine>
struct ConfigOf<Engine> {
  using Type = std::remove_pointer_t<decltype(std::declval<Engine&>().createRuntimeConfig())>;
};

template <class Config>
concept HasRuntimeCache = requires(Config& config) {
  config.createRuntimeCache()->serialize();
};
template <class Config>
concept HasSpecialization = requires(Config& config) {
  config.getDynamicShapesKernelSpecializationStrategy();
};
template <class Config>
concept HasGraphStrategy = requires(Config& config) {
  config.getCudaGraphStrategy();
};

template <class Context>
concept HasCaptureQuery = requires(Context& context) {
  context.isStreamCapturable(nullptr);
};
template <class Context>
concept HasCommunicator = requires(Context& context) {
  context.setCommunicator(nullptr);
};

// What the context says; true where the interface cannot ask it.
template <class Context>
bool may_capture(const Context& context, cudaStream_t stream) {
  if constexpr (HasCaptureQuery<const Context>) {
    return context.isStreamCapturable(stream);
  } else {
    return true;
  }
}

// Null where the interface has no communicators, else whether the context takes it.
template <class Context>
std::optional<bool> give_communicator(Context& context, void* communicator) {
  if constexpr (HasCommunicator<Context>) {
    return context.setCommunicator(communicator);
  } else {
    return std::nullopt;
  }
}

template <class Engine>
constexpr WrapperFeatures features_of() {
  using Config = typename ConfigOf<Engine>::Type;
  using Strategy = nvinfer1::ExecutionContextAllocationStrategy;
  using Context = std::remove_pointer_t<decltype(std::declval<Engine&>().createExecutionContext(Strategy{}))>;
  WrapperFeatures features{};
  features.interfaceMajor = NV_TENSORRT_MAJOR;
  features.runtimeConfig = HasRuntimeConfig<Engine>;
  features.runtimeCache = HasRuntimeCache<Config>;
  features.specialization = HasSpecialization<Config>;
  features.cudaGraphStrategy = HasGraphStrategy<Config>;
  features.captureQuery = HasCaptureQuery<Context>;
  features.communicator = HasCommunicator<Context>;
  return features;
}

}  // namespace lathe::wrapper
