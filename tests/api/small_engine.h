// SPDX-License-Identifier: Apache-2.0
// A network of a few layers, its engine, and a logger that keeps what is reported.
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

// y = relu(x * w + b) over x[n, 3], n in [1, 8].
class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    const Dims2 dims(-1, 3);
    ITensor* x = network->addInput("x", DataType::kFLOAT, dims);
    auto* weights = network->addConstant(Dims2(3, 2), Weights{DataType::kFLOAT, w, 6});
    auto* product =
        network->addMatrixMultiply(*x, MatrixOperation::kNONE, *weights->getOutput(0), MatrixOperation::kNONE);
    auto* bias = network->addConstant(Dims2(1, 2), Weights{DataType::kFLOAT, b, 2});
    auto* sum = network->addElementWise(*product->getOutput(0), *bias->getOutput(0), ElementWiseOperation::kSUM);
    auto* relu = network->addActivation(*sum->getOutput(0), ActivationType::kRELU);
    relu->getOutput(0)->setName("y");
    network->markOutput(*relu->getOutput(0));
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 3));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(4, 3));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(8, 3));
    EXPECT_EQ(config->addOptimizationProfile(profile), 0);
    lathe::setBuildBudget(*config, 0);
  }

  std::unique_ptr<IHostMemory> build() {
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << (logger.text.empty() ? "" : logger.text.back());
    return plan;
  }
  std::unique_ptr<ICudaEngine> load(const IHostMemory& plan) {
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
    EXPECT_NE(engine, nullptr) << (logger.text.empty() ? "" : logger.text.back());
    return engine;
  }

  const float w[6] = {1, 0, 0, 1, 1, 1};
  const float b[2] = {0, -10};
  Errors logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
};

}  // namespace nvinfer1
