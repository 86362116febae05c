// SPDX-License-Identifier: Apache-2.0
// One of each object of the public interface, for the walk over all settings.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "NvOnnxParser.h"
#include "api/target.h"
#include "lathe.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1 {

struct Counts : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) errors.emplace_back(message);
    // Which the first call in the process gives, whoever makes it.
    const bool of_deprecation = std::string_view(message).find(" is deprecated: ") != std::string_view::npos;
    if (severity == Severity::kWARNING && !of_deprecation) warnings.emplace_back(message);
  }
  std::vector<std::string> errors, warnings;
};

struct Recorder : IErrorRecorder {
  int32_t getNbErrors() const noexcept override { return count; }
  ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kUNSPECIFIED_ERROR; }
  ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override { count = 0; }
  bool reportError(ErrorCode, ErrorDesc) noexcept override { return ++count > 0; }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  int count = 0, references = 0;
};

struct Allocator : IGpuAllocator {
  void* allocate(uint64_t, uint64_t, AllocatorFlags) noexcept override { return nullptr; }
  bool deallocate(void*) noexcept override { return true; }
};

struct Outputs : IOutputAllocator {
  void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) override { return nullptr; }
  void notifyShape(const char*, const Dims&) noexcept override {}
};

struct Times : IProfiler {
  void reportLayerTime(const char*, float) noexcept override {}
};

struct Monitor : IProgressMonitor {
  void phaseStart(const char*, const char*, int32_t) noexcept override {}
  bool stepComplete(const char*, int32_t) noexcept override { return true; }
  void phaseFinish(const char*) noexcept override {}
};

struct Listener : IDebugListener {
  bool processDebugTensor(const void*, TensorLocation, DataType, const Dims&, const char*, cudaStream_t) override {
    return true;
  }
};

// One of each object. y = relu(x), x[n, 3] with n from 1 to 8.
struct World {
  World() {
    network->markOutput(*relu->getOutput(0));
    relu->getOutput(0)->setName("y");
    fill(*builder->createOptimizationProfile());
  }
  IOptimizationProfile& fill(IOptimizationProfile& profile) {
    profile.setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 3));
    profile.setDimensions("x", OptProfileSelector::kOPT, Dims2(4, 3));
    profile.setDimensions("x", OptProfileSelector::kMAX, Dims2(8, 3));
    return profile;
  }
  ICudaEngine& engine() {
    if (engine_) return *engine_;
    const std::unique_ptr<IBuilderConfig> settings(builder->createBuilderConfig());
    settings->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    settings->addOptimizationProfile(&fill(*builder->createOptimizationProfile()));
    lathe::setBuildBudget(*settings, 0);
    network->markDebug(*relu->getOutput(0));
    network->markUnfusedTensorsAsDebugTensors();
    static const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *settings));
    engine_.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    return *engine_;
  }
  IExecutionContext& context(
      ExecutionContextAllocationStrategy strategy = ExecutionContextAllocationStrategy::kSTATIC) {
    if (!context_) context_.reset(engine().createExecutionContext(strategy));
    return *context_;
  }
  IRuntimeConfig& runtime_config() {
    if (!runtime_config_) runtime_config_.reset(engine().createRuntimeConfig());
    return *runtime_config_;
  }
  IRuntimeCache& runtime_cache() {
    if (!runtime_cache_) runtime_cache_.reset(runtime_config().createRuntimeCache());
    return *runtime_cache_;
  }
  ISerializationConfig& serialization() {
    if (!serialization_) serialization_.reset(engine().createSerializationConfig());
    return *serialization_;
  }
  IRefitter& refitter() {
    if (!refitter_) refitter_.reset(createInferRefitter(engine(), log));
    return *refitter_;
  }
  // Of an engine with weights "w", three numbers of layer "c".
  IRefitter& weights() {
    if (weights_) return *weights_;
    static const float kOnes[] = {1, 1, 1};
    const std::unique_ptr<INetworkDefinition> scaling(builder->createNetworkV2(0));
    ITensor* in = scaling->addInput("in", DataType::kFLOAT, Dims2(2, 3));
    auto* ones = scaling->addConstant(Dims2(1, 3), Weights{DataType::kFLOAT, kOnes, 3});
    ones->setName("c");
    scaling->setWeightsName(Weights{DataType::kFLOAT, kOnes, 3}, "w");
    scaling->markOutput(*scaling->addElementWise(*in, *ones->getOutput(0), ElementWiseOperation::kPROD)->getOutput(0));
    const std::unique_ptr<IBuilderConfig> settings(builder->createBuilderConfig());
    settings->setFlag(BuilderFlag::kREFIT);
    lathe::setBuildBudget(*settings, 0);
    static const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*scaling, *settings));
    scaled_.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    weights_.reset(createInferRefitter(*scaled_, log));
    return *weights_;
  }
  Weights three() const { return {DataType::kFLOAT, memory, 3}; }
  IEngineInspector& inspector() {
    if (!inspector_) inspector_.reset(engine().createEngineInspector());
    return *inspector_;
  }
  IOptimizationProfile& profile() {
    if (!profile_) profile_ = builder->createOptimizationProfile();
    return *profile_;
  }

  Counts log;
  Recorder recorder;
  Allocator allocator;
  Outputs outputs;
  Times times;
  Monitor monitor;
  Listener listener;
  const std::shared_ptr<void> block = context_memory(256);
  float memory[64] alignas(256) = {};
  int anything = 0;
  std::unique_ptr<IBuilder> builder{createInferBuilder(log)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, log)};
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 3));
  IActivationLayer* relu = network->addActivation(*x, ActivationType::kRELU);
  std::unique_ptr<IRuntime> runtime{createInferRuntime(log)};
  std::unique_ptr<ITimingCache> cache{config->createTimingCache(nullptr, 0)};

  // What a handle of the application's may be; none of these is ever used.
  template <class Handle>
  Handle handle() {
    return reinterpret_cast<Handle>(&anything);
  }

 private:
  std::unique_ptr<ICudaEngine> engine_;
  std::unique_ptr<IExecutionContext> context_;
  std::unique_ptr<IRuntimeCache> runtime_cache_;
  std::unique_ptr<IRuntimeConfig> runtime_config_;
  std::unique_ptr<ISerializationConfig> serialization_;
  std::unique_ptr<IRefitter> refitter_;
  std::unique_ptr<ICudaEngine> scaled_;
  std::unique_ptr<IRefitter> weights_;
  std::unique_ptr<IEngineInspector> inspector_;
  IOptimizationProfile* profile_ = nullptr;
};

}  // namespace nvinfer1
