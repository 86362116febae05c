// SPDX-License-Identifier: Apache-2.0
// What decides which tactics a build takes, and what does not.
#include <regex>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

class Choice : public testing::Test {
 protected:
  // The layers of an engine of x[n, 512] * w, n from 1 to 4096, as the inspector tells them.
  std::string layers(int64_t opt, bool independent = false) {
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 512));
    ITensor* w = network->addConstant(Dims2(512, 256), {DataType::kFLOAT, weights.data(), 512 * 256})->getOutput(0);
    ITensor* y = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
    network->markOutput(*y);
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 512));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(opt, 512));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(4096, 512));
    config->addOptimizationProfile(profile);
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    if (independent) config->setFlag(BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
    lathe::setBuildBudget(*config, 0);  // the cost model decides
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << logger.last();
    const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
    return inspector->getEngineInformation(LayerInformationFormat::kJSON);
  }
  static std::string tactic_of(const std::string& layers) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(layers, found, std::regex(R"x("TacticName": "([^"]+)")x"))) << layers;
    return found[1];
  }

  std::vector<float> weights = std::vector<float>(512 * 256, 0.5F);
  Errors logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
};

// S162: nothing but the opt sizes differs.
TEST_F(Choice, FollowsTheOptSizesOfTheProfile) {
  const std::string of_one = tactic_of(layers(1)), of_many = tactic_of(layers(4096));
  EXPECT_NE(of_one, of_many);
  EXPECT_EQ(tactic_of(layers(1)), of_one);
  RecordProperty("of_one", of_one);
  RecordProperty("of_many", of_many);
}

// S175: kernels compute slices alike with the flag and without, so that it changes no step, and costs nothing.
TEST_F(Choice, DoesNotDependOnDistributiveIndependence) {
  for (const int64_t opt : {1, 64, 4096}) EXPECT_EQ(layers(opt, true), layers(opt, false)) << opt;
}

}  // namespace
}  // namespace nvinfer1
