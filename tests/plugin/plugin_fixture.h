// SPDX-License-Identifier: Apache-2.0
// Networks with one plugin: built, loaded, run.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "test_plugins.h"

namespace nvinfer1 {

struct Messages : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    const std::lock_guard lock(mutex);
    if (severity <= Severity::kERROR) errors.emplace_back(message);
    if (severity == Severity::kWARNING) warnings.emplace_back(message);
  }
  std::string last() const { return errors.empty() ? "" : errors.back(); }
  std::mutex mutex;
  std::vector<std::string> errors, warnings;
};

class PluginV3 : public testing::Test {
 protected:
  void SetUp() override {
    lathe::setTarget(*config, target());
    lathe::setBuildBudget(*config, 0);
    IPluginRegistry& registry = runtime->getPluginRegistry();
    ASSERT_TRUE(registry.registerCreator(scale_, "test"));
    ASSERT_TRUE(registry.registerCreator(nonzero_, "test"));
    ASSERT_TRUE(registry.registerCreator(in_place_, "test"));
    ASSERT_TRUE(registry.registerCreator(tactic_, "test"));
    alive_ = g_alive;
  }

  virtual const char* target() const { return "cpu"; }

  // x[n, 3], n up to 6, through the plugin; its outputs are y0, y1.
  IPluginV3Layer* add(IPluginV3& plugin) {
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 3));
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 3));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(2, 3));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(6, 3));
    config->addOptimizationProfile(profile);
    IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);
    if (!layer) return nullptr;
    layer->setName("the layer");
    for (int32_t i = 0; i < layer->getNbOutputs(); ++i) {
      layer->getOutput(i)->setName(("y" + std::to_string(i)).c_str());
      network->markOutput(*layer->getOutput(i));
    }
    return layer;
  }
  bool build() {
    plan.reset(builder->buildSerializedNetwork(*network, *config));
    return plan != nullptr;
  }
  bool load() {
    engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (engine) context.reset(engine->createExecutionContext());
    return context != nullptr;
  }
  struct Allocator : IOutputAllocator {
    void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t, cudaStream_t) override {
      memory.resize(size + 1);
      return memory.data();
    }
    void notifyShape(const char*, const Dims& shape) noexcept override { dims = shape; }
    std::vector<std::byte> memory;
    Dims dims{};
  };
  // Runs on rows of x; outputs are in allocators_.
  bool run(std::vector<float> x) {
    context->setInputShape("x", Dims2(static_cast<int64_t>(x.size()) / 3, 3));
    context->setTensorAddress("x", x.data());
    for (int32_t i = 0; i < engine->getNbIOTensors(); ++i) {
      const char* name = engine->getIOTensorName(i);
      if (engine->getTensorIOMode(name) == TensorIOMode::kOUTPUT) context->setOutputAllocator(name, &allocators_[name]);
    }
    const bool ran = context->enqueueV3(nullptr);
    x_ = x;
    return ran;
  }
  template <class T = float>
  std::vector<T> result(const std::string& name) {
    const Allocator& from = allocators_[name];
    int64_t count = 1;
    for (int32_t i = 0; i < from.dims.nbDims; ++i) count *= from.dims.d[i];
    const T* data = reinterpret_cast<const T*>(from.memory.data());
    return {data, data + count};
  }

  TestCreator<ScalePlugin> scale_{"Scale"};
  TestCreator<NonzeroPlugin> nonzero_{"Nonzero"};
  TestCreator<InPlacePlugin> in_place_{"InPlace"};
  TestCreator<TacticPlugin> tactic_{"Tactic"};
  int alive_ = 0;
  std::map<std::string, Allocator> allocators_;
  std::vector<float> x_;
  Messages logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
  std::unique_ptr<IHostMemory> plan;
  std::unique_ptr<ICudaEngine> engine;
  std::unique_ptr<IExecutionContext> context;
};

}  // namespace nvinfer1
