// SPDX-License-Identifier: Apache-2.0
// Inputs whose values are shapes: they lie in host memory, profiles give their ranges, and contexts read them when they
// are set.
#include <gtest/gtest.h>

#include <numeric>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

constexpr OptProfileSelector kSelectors[] = {OptProfileSelector::kMIN, OptProfileSelector::kOPT,
                                             OptProfileSelector::kMAX};

// y = reshape(x[n, 4], target), where the application gives `target`.
class ShapeInput : public NetworkTest {
 protected:
  void declare(DataType type) {
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 4));
    ITensor* target = network->addInput("target", type, Dims{1, {2}});
    IShuffleLayer* shuffle = network->addShuffle(*x);
    shuffle->setInput(1, *target);
    mark(shuffle->getOutput(0), "y");
    EXPECT_TRUE(target->isShapeTensor());
    EXPECT_FALSE(x->isShapeTensor());
    const int64_t rows[] = {1, 2, 8}, low[] = {1, 1}, middle[] = {2, 4}, high[] = {32, 32};
    const int64_t* values[] = {low, middle, high};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(profile->setDimensions("x", kSelectors[i], Dims2(rows[i], 4)));
      EXPECT_TRUE(profile->setShapeValuesV2("target", kSelectors[i], values[i], 2));
    }
    EXPECT_EQ(config->addOptimizationProfile(profile), 0);
  }
  IOptimizationProfile* profile = builder->createOptimizationProfile();
};

TEST_F(ShapeInput, EnginesTellOfThem) {
  declare(DataType::kINT64);
  ASSERT_TRUE(make_context()) << logger.last();
  EXPECT_TRUE(engine->isShapeInferenceIO("target"));
  EXPECT_FALSE(engine->isShapeInferenceIO("x"));
  EXPECT_EQ(engine->getTensorLocation("target"), TensorLocation::kHOST);
  EXPECT_EQ(engine->getTensorLocation("x"), TensorLocation::kDEVICE);
  EXPECT_EQ(engine->getTensorDataType("target"), DataType::kINT64);
  EXPECT_EQ(engine->getTensorShape("target").d[0], 2);
  const int64_t* high = engine->getProfileTensorValuesV2("target", 0, OptProfileSelector::kMAX);
  ASSERT_NE(high, nullptr);
  EXPECT_EQ(high[0], 32);
  EXPECT_EQ(engine->getProfileShape("target", 0, OptProfileSelector::kMAX).d[0], 2);
  EXPECT_EQ(engine->getProfileTensorValuesV2("x", 0, OptProfileSelector::kMAX), nullptr);
}

TEST_F(ShapeInput, ValuesAreReadOnTheHost) {
  declare(DataType::kINT64);
  ASSERT_TRUE(make_context()) << logger.last();
  std::vector<float> x(32), y(32);
  std::iota(x.begin(), x.end(), 0.0f);
  int64_t target[] = {2, 4};
  const char* missing[2] = {};
  EXPECT_EQ(context->inferShapes(2, missing), 2);
  EXPECT_TRUE(context->setInputShape("x", Dims2(2, 4)));
  EXPECT_EQ(context->inferShapes(2, missing), 1);
  EXPECT_STREQ(missing[0], "target");
  EXPECT_TRUE(context->allInputDimensionsSpecified());
  EXPECT_TRUE(context->setInputShape("target", Dims{1, {2}}));
  EXPECT_TRUE(context->setTensorAddress("target", target));
  EXPECT_EQ(context->inferShapes(2, missing), 0) << logger.last();
  EXPECT_EQ(context->getTensorShape("y").d[1], 4);
  EXPECT_TRUE(context->setInputTensorAddress("x", x.data()));
  EXPECT_TRUE(context->setTensorAddress("y", y.data()));
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 8), std::vector<float>(x.begin(), x.begin() + 8));
  // Other values at the same address are other shapes.
  target[0] = 8, target[1] = 1;
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(context->getTensorShape("y").d[0], 8);
  EXPECT_EQ(context->getTensorStrides("y").d[0], 1);
}

TEST_F(ShapeInput, ValuesOutsideTheProfileOrTheDataAreRefused) {
  declare(DataType::kINT64);
  ASSERT_TRUE(make_context()) << logger.last();
  float x[32] = {}, y[32];
  int64_t target[] = {64, 1};
  EXPECT_TRUE(context->setInputShape("x", Dims2(2, 4)));
  EXPECT_TRUE(context->setInputTensorAddress("x", x));
  EXPECT_TRUE(context->setTensorAddress("y", y));
  EXPECT_TRUE(context->setTensorAddress("target", target));
  EXPECT_EQ(context->inferShapes(0, nullptr), -1);
  EXPECT_NE(logger.last().find("element 0 is 64, profile 0 allows 1 to 32"), std::string::npos) << logger.last();
  EXPECT_FALSE(context->enqueueV3(nullptr));
  target[0] = 3, target[1] = 3;  // 9 elements of 8
  EXPECT_FALSE(context->enqueueV3(nullptr));
  target[0] = 4, target[1] = 2;
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
}

TEST_F(ShapeInput, MayBeOf32Bits) {
  declare(DataType::kINT32);
  ASSERT_TRUE(make_context()) << logger.last();
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
  const int32_t target[] = {1, 8};
  EXPECT_TRUE(context->setInputShape("x", Dims2(2, 4)));
  EXPECT_TRUE(context->setInputTensorAddress("x", x));
  EXPECT_TRUE(context->setTensorAddress("y", y));
  EXPECT_TRUE(context->setInputTensorAddress("target", target));
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(context->getTensorShape("y").d[1], 8);
  EXPECT_EQ(y[7], 8);
}

}  // namespace
}  // namespace nvinfer1
