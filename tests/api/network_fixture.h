// SPDX-License-Identifier: Apache-2.0
// What tests of networks begin with: an empty network, a configuration that measures nothing, a logger that keeps what
// is reported; and what they go on to, an engine and a context.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/target.h"
#include "lathe.h"

namespace nvinfer1 {

struct Errors : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity > most) return;
    const std::lock_guard lock(mutex);
    text.emplace_back(message);
  }
  std::string last() const { return text.empty() ? std::string() : text.back(); }
  Severity most = Severity::kERROR;
  std::mutex mutex;
  std::vector<std::string> text;
};

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() { lathe::setBuildBudget(*config, 0); }

  void mark(ITensor* tensor, const char* name) {  // as an output
    tensor->setName(name);
    network->markOutput(*tensor);
  }
  struct InputSizes {
    const char* input;
    Dims min, opt, max;
  };
  void add_profile(const std::vector<InputSizes>& inputs) {
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    for (const InputSizes& sizes : inputs) {
      profile->setDimensions(sizes.input, OptProfileSelector::kMIN, sizes.min);
      profile->setDimensions(sizes.input, OptProfileSelector::kOPT, sizes.opt);
      profile->setDimensions(sizes.input, OptProfileSelector::kMAX, sizes.max);
    }
    EXPECT_GE(config->addOptimizationProfile(profile), 0) << logger.last();
  }
  std::unique_ptr<IHostMemory> build() {
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << logger.last();
    return plan;
  }
  std::unique_ptr<ICudaEngine> load(const IHostMemory& plan) {
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
    EXPECT_NE(engine, nullptr) << logger.last();
    return engine;
  }
  // Of the network; false where it cannot be built.
  bool make_context() {
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    context.reset();
    engine = plan ? load(*plan) : nullptr;
    if (engine) context.reset(engine->createExecutionContext());
    return context != nullptr;
  }

  Errors logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
  std::unique_ptr<ICudaEngine> engine;
  std::unique_ptr<IExecutionContext> context;
};

}  // namespace nvinfer1
