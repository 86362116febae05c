// SPDX-License-Identifier: Apache-2.0
// Engines of several optimization profiles, and contexts that change between them.
#include <cstdlib>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

constexpr auto kStatic = ExecutionContextAllocationStrategy::kSTATIC;
constexpr auto kOnChange = ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE;
constexpr auto kUser = ExecutionContextAllocationStrategy::kUSER_MANAGED;

// Profile 0 is that of EngineTest, 1 to 8 rows; profile 1 is for 100 to 300, profile 2 for 5 alone.
class Profiles : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    const int64_t ranges[][3] = {{100, 200, 300}, {5, 5, 5}};
    for (const auto& range : ranges) {
      IOptimizationProfile* profile = builder->createOptimizationProfile();
      profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(range[0], 3));
      profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(range[1], 3));
      profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(range[2], 3));
      ASSERT_GT(config->addOptimizationProfile(profile), 0);
    }
    // A second layer, so that there is something to keep between the two.
    ITensor* y = network->getOutput(0);
    network->unmarkOutput(*y);
    y->setName("hidden");
    ISoftMaxLayer* softmax = network->addSoftMax(*y);
    softmax->setAxes(1U << 1);
    ITensor* top = softmax->getOutput(0);
    top->setName("y");
    network->markOutput(*top);
    engine = load(*build());
    ASSERT_NE(engine, nullptr);
  }
  std::unique_ptr<IExecutionContext> make(ExecutionContextAllocationStrategy strategy = kStatic) {
    return std::unique_ptr<IExecutionContext>(engine->createExecutionContext(strategy));
  }
  // Of `rows` rows 1, 2, 12: softmax(13, 4).
  void expect_result(IExecutionContext& context, int64_t rows) {
    std::vector<float> x, y(static_cast<size_t>(2 * rows));
    for (int64_t r = 0; r < rows; ++r) x.insert(x.end(), {1, 2, 12});
    ASSERT_TRUE(context.setInputShape("x", Dims2(rows, 3))) << logger.last();
    ASSERT_TRUE(context.setInputTensorAddress("x", x.data()));
    ASSERT_TRUE(context.setTensorAddress("y", y.data()));
    ASSERT_TRUE(context.enqueueV3(nullptr)) << logger.last();
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) ASSERT_NEAR(y[2 * r], 0.99987661, 1e-6) << r;
  }
};

TEST_F(Profiles, AreTold) {
  ASSERT_EQ(engine->getNbOptimizationProfiles(), 3);
  EXPECT_EQ(engine->getProfileShape("x", 0, OptProfileSelector::kMAX).d[0], 8);
  EXPECT_EQ(engine->getProfileShape("x", 1, OptProfileSelector::kMIN).d[0], 100);
  EXPECT_EQ(engine->getProfileShape("x", 1, OptProfileSelector::kOPT).d[0], 200);
  EXPECT_EQ(engine->getProfileShape("x", 2, OptProfileSelector::kMIN).d[0], 5);
  EXPECT_EQ(engine->getTensorShape("x").d[0], -1);
  EXPECT_EQ(engine->getProfileShape("x", 3, OptProfileSelector::kMIN).nbDims, -1);
  EXPECT_EQ(logger.text.size(), 1u);
}

TEST_F(Profiles, AChangeForgetsShapesAndKeepsAddresses) {
  const auto context = make();
  EXPECT_EQ(context->getOptimizationProfile(), 0);
  expect_result(*context, 8);
  EXPECT_FALSE(context->setInputShape("x", Dims2(100, 3)));
  ASSERT_TRUE(context->setOptimizationProfileAsync(1, nullptr));
  EXPECT_EQ(context->getOptimizationProfile(), 1);
  EXPECT_FALSE(context->allInputDimensionsSpecified());
  EXPECT_EQ(context->getTensorShape("x").d[0], -1);
  EXPECT_NE(context->getTensorAddress("x"), nullptr);
  const char* missing = nullptr;
  EXPECT_EQ(context->inferShapes(1, &missing), 1);
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_FALSE(context->setInputShape("x", Dims2(8, 3)));
  expect_result(*context, 300);
  expect_result(*context, 100);
  ASSERT_TRUE(context->setOptimizationProfileAsync(1, nullptr));  // no change
  EXPECT_TRUE(context->allInputDimensionsSpecified());
  ASSERT_TRUE(context->setOptimizationProfileAsync(2, nullptr));
  expect_result(*context, 5);
  ASSERT_TRUE(context->setOptimizationProfileAsync(0, nullptr));
  expect_result(*context, 1);
}

TEST_F(Profiles, WhatDoesNotExistIsRefusedAndChangesNothing) {
  const auto context = make();
  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  for (const int32_t index : {-1, 3, INT32_MAX}) EXPECT_FALSE(context->setOptimizationProfileAsync(index, nullptr));
  EXPECT_EQ(logger.text.size(), 3u);
  EXPECT_EQ(context->getOptimizationProfile(), 0);
  EXPECT_TRUE(context->allInputDimensionsSpecified());
}

// S147.
TEST_F(Profiles, ContextsHaveTheirOwn) {
  const auto small = make(), large = make();
  ASSERT_TRUE(large->setOptimizationProfileAsync(1, nullptr));
  expect_result(*small, 8);
  expect_result(*large, 300);
  expect_result(*small, 1);
  EXPECT_EQ(small->getOptimizationProfile(), 0);
}

// S136.
TEST_F(Profiles, MemoryIsForTheProfileOrForAll) {
  const int64_t small = engine->getDeviceMemorySizeForProfileV2(0), large = engine->getDeviceMemorySizeForProfileV2(1);
  EXPECT_GT(small, 0);
  EXPECT_GT(large, small);
  EXPECT_EQ(engine->getDeviceMemorySizeV2(), large);
  for (const auto strategy : {kStatic, kOnChange}) {
    const auto context = make(strategy);
    for (const auto& [profile, rows] : {std::pair(0, 8), {1, 300}, {2, 5}, {1, 100}, {0, 3}}) {
      ASSERT_TRUE(context->setOptimizationProfileAsync(profile, nullptr));
      expect_result(*context, rows);
      EXPECT_LE(context->updateDeviceMemorySizeForShapes(),
                static_cast<size_t>(engine->getDeviceMemorySizeForProfileV2(profile)));
    }
  }
}

TEST_F(Profiles, UsersMemoryMustBeEnoughForTheProfile) {
  const auto context = make(kUser);
  const auto small = static_cast<size_t>(engine->getDeviceMemorySizeForProfileV2(0));
  const auto large = static_cast<size_t>(engine->getDeviceMemorySizeForProfileV2(1));
  const std::shared_ptr<void> memory = context_memory(large);
  context->setDeviceMemoryV2(memory.get(), static_cast<int64_t>(small));
  expect_result(*context, 8);
  ASSERT_TRUE(context->setOptimizationProfileAsync(1, nullptr));
  const std::vector<float> x(900);
  std::vector<float> y(600);
  ASSERT_TRUE(context->setInputShape("x", Dims2(300, 3)));
  ASSERT_TRUE(context->setInputTensorAddress("x", x.data()));
  ASSERT_TRUE(context->setTensorAddress("y", y.data()));
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_NE(logger.last().find("LATHE-5102"), std::string::npos) << logger.last();
  context->setDeviceMemoryV2(memory.get(), static_cast<int64_t>(large));
  expect_result(*context, 300);
}

}  // namespace
}  // namespace nvinfer1
