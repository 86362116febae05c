// SPDX-License-Identifier: Apache-2.0
// How contexts are set up: IRuntimeConfig, whose settings each context takes by value.
#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

using Config = std::unique_ptr<IRuntimeConfig>;
using Context = std::unique_ptr<IExecutionContext>;
using Specialization = DynamicShapesKernelSpecializationStrategy;

class RuntimeConfigTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    engine = load(*build());
    settings.reset(engine->createRuntimeConfig());
    logger.most = ILogger::Severity::kWARNING;
    logger.text.clear();
  }
  Config settings;
};

// S226, S227: names, numbers and defaults; what does not exist is refused and changes nothing.
TEST_F(RuntimeConfigTest, Strategies) {
  EXPECT_EQ(settings->getDynamicShapesKernelSpecializationStrategy(), Specialization::kLAZY);
  EXPECT_EQ(settings->getCudaGraphStrategy(), CudaGraphStrategy::kDISABLED);
  EXPECT_EQ(settings->getRuntimeCache(), nullptr);
  settings->setDynamicShapesKernelSpecializationStrategy(static_cast<Specialization>(3));
  EXPECT_EQ(settings->getDynamicShapesKernelSpecializationStrategy(), Specialization::kLAZY);
  EXPECT_EQ(logger.text.size(), 1u);
  EXPECT_FALSE(settings->setCudaGraphStrategy(static_cast<CudaGraphStrategy>(-1)));
  EXPECT_EQ(settings->getCudaGraphStrategy(), CudaGraphStrategy::kDISABLED);
  EXPECT_EQ(logger.text.size(), 2u);
  for (const auto strategy : {Specialization::kNONE, Specialization::kEAGER, Specialization::kLAZY}) {
    settings->setDynamicShapesKernelSpecializationStrategy(strategy);
    EXPECT_EQ(settings->getDynamicShapesKernelSpecializationStrategy(), strategy);
  }
  EXPECT_EQ(logger.text.size(), 2u);
  settings->setDynamicShapesKernelSpecializationStrategy(Specialization::kEAGER);
  const Context eager(engine->createExecutionContext(settings.get()));
  ASSERT_NE(eager, nullptr);
  EXPECT_EQ(logger.text.size(), on_gpu() ? 2u : 3u) << "kEAGER has no effect on a CPU";
}

// S201, S202, S228: each context has the settings that it was made with, whichever way.
TEST_F(RuntimeConfigTest, ContextsHaveTheirSettingsByValue) {
  settings->setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy::kUSER_MANAGED);
  settings->setDynamicShapesKernelSpecializationStrategy(Specialization::kNONE);
  const Context first(engine->createExecutionContext(settings.get()));
  settings->setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
  settings->setDynamicShapesKernelSpecializationStrategy(Specialization::kLAZY);
  const Context second(engine->createExecutionContext(settings.get()));
  settings.reset();
  const Context third(engine->createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED));
  ASSERT_TRUE(first && second && third);
  const Config of_first(first->getRuntimeConfig()), of_second(second->getRuntimeConfig()),
      of_third(third->getRuntimeConfig());
  EXPECT_EQ(of_first->getExecutionContextAllocationStrategy(), ExecutionContextAllocationStrategy::kUSER_MANAGED);
  EXPECT_EQ(of_first->getDynamicShapesKernelSpecializationStrategy(), Specialization::kNONE);
  EXPECT_EQ(of_second->getExecutionContextAllocationStrategy(), ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
  EXPECT_EQ(of_second->getDynamicShapesKernelSpecializationStrategy(), Specialization::kLAZY);
  EXPECT_EQ(of_third->getExecutionContextAllocationStrategy(), ExecutionContextAllocationStrategy::kUSER_MANAGED);
  EXPECT_TRUE(logger.text.empty());
}

// S197: what acts on GPUs alone says so, and changes no result.
TEST_F(RuntimeConfigTest, OnACpuTheySayThatTheyDoNothing) {
  if (on_gpu()) GTEST_SKIP() << "they act there";
  const std::unique_ptr<IRuntimeCache> cache(settings->createRuntimeCache());
  ASSERT_NE(cache, nullptr);
  EXPECT_TRUE(settings->setRuntimeCache(*cache));
  EXPECT_TRUE(settings->setCudaGraphStrategy(CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE));
  EXPECT_TRUE(logger.text.empty());
  const Context context(engine->createExecutionContext(settings.get()));
  ASSERT_NE(context, nullptr);
  ASSERT_EQ(logger.text.size(), 2u);
  EXPECT_NE(logger.text[0].find("the runtime cache stays empty"), std::string::npos);
  EXPECT_NE(logger.text[1].find("a CPU has no CUDA graphs"), std::string::npos);
  const float x[3] = {1, 1, 1};
  float y[2] = {};
  context->setInputShape("x", Dims2(1, 3));
  context->setInputTensorAddress("x", x);
  context->setTensorAddress("y", y);
  EXPECT_FALSE(context->isStreamCapturable(nullptr));
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(context->enqueueV3(nullptr));
  EXPECT_EQ(y[0], 2);
}

// A cache is for one device, also where it comes with the configuration of another engine.
TEST_F(RuntimeConfigTest, CachesAreOfOneDevice) {
  if (!on_gpu()) GTEST_SKIP() << "needs two devices: a GPU and the CPU";
  ASSERT_TRUE(lathe::setTarget(*config, "cpu"));
  const auto other = load(*build());
  const Config of_other(other->createRuntimeConfig());
  const std::unique_ptr<IRuntimeCache> cache(of_other->createRuntimeCache());
  ASSERT_NE(cache, nullptr);
  ASSERT_TRUE(of_other->setRuntimeCache(*cache));
  logger.text.clear();
  EXPECT_FALSE(settings->setRuntimeCache(*cache));
  EXPECT_EQ(engine->createExecutionContext(of_other.get()), nullptr);
  ASSERT_EQ(logger.text.size(), 2u);
  for (const std::string& line : logger.text) EXPECT_NE(line.find("for another device"), std::string::npos) << line;
}

TEST_F(RuntimeConfigTest, CachesAreOfAnEngineThatRuns) {
  lathe::setInspectionOnly(*runtime, true);
  const auto looked_at = load(*build());
  const Config of_it(looked_at->createRuntimeConfig());
  EXPECT_EQ(of_it->createRuntimeCache(), nullptr);
  EXPECT_NE(logger.last().find("setInspectionOnly"), std::string::npos) << logger.last();
}

}  // namespace
}  // namespace nvinfer1
