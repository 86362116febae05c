// SPDX-License-Identifier: Apache-2.0
// What several threads may do at once: load through one runtime, ask an engine, make contexts and run them, build with
// builders of their own. Meant for ThreadSanitizer, too.
#include <latch>
#include <thread>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

constexpr int kThreads = 16;
constexpr int kRounds = 100;

template <class Work>
void on_threads(Work&& work) {
  std::vector<std::thread> threads;
  std::latch start(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      work(t);
    });
  for (std::thread& thread : threads) thread.join();
}

class ApiThreads : public EngineTest {
 protected:
  // relu(x * w + b) of `rows` rows, each of them 1, 2, t.
  static void expect_result(IExecutionContext& context, int64_t rows, float t) {
    std::vector<float> x, y(static_cast<size_t>(2 * rows));
    for (int64_t r = 0; r < rows; ++r) x.insert(x.end(), {1, 2, t});
    ASSERT_TRUE(context.setInputShape("x", Dims2(rows, 3)));
    ASSERT_TRUE(context.setInputTensorAddress("x", x.data()));
    ASSERT_TRUE(context.setTensorAddress("y", y.data()));
    ASSERT_TRUE(context.enqueueV3(nullptr));
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
      ASSERT_EQ(y[2 * r], 1 + t);
      ASSERT_EQ(y[2 * r + 1], std::max(2 + t - 10, 0.0f));
    }
  }
  static void ask(const ICudaEngine& engine) {
    ASSERT_EQ(engine.getNbIOTensors(), 2);
    ASSERT_STREQ(engine.getIOTensorName(1), "y");
    ASSERT_EQ(engine.getTensorShape("y").d[1], 2);
    ASSERT_EQ(engine.getProfileShape("x", 0, OptProfileSelector::kMAX).d[0], 8);
    ASSERT_EQ(engine.getDeviceMemorySizeV2(), engine.getDeviceMemorySizeForProfileV2(0));
    ASSERT_GT(engine.getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE), 0);
    const std::unique_ptr<IEngineInspector> inspector(engine.createEngineInspector());
    ASSERT_GT(std::string(inspector->getEngineInformation(LayerInformationFormat::kJSON)).size(), 20u);
  }
};

// S147, S148, S150.
TEST_F(ApiThreads, ContextsOfOneEngineComeAndGo) {
  const auto engine = load(*build());
  on_threads([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
      ASSERT_NE(context, nullptr);
      expect_result(*context, 1 + (t + i) % 8, static_cast<float>(t));
      ask(context->getEngine());
    }
  });
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// S148, S149, S157.
TEST_F(ApiThreads, OneRuntimeLoadsAndAnswers) {
  const auto plan = build();
  on_threads([&](int t) {
    for (int i = 0; i < kRounds / 10; ++i) {
      const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
      ASSERT_NE(engine, nullptr);
      ASSERT_EQ(runtime->getLogger(), &logger);
      ASSERT_EQ(runtime->getMaxThreads(), 1);
      if (t % 4 == 0) {
        ASSERT_EQ(runtime->deserializeCudaEngine("nonsense", 8), nullptr);
      }
      const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
      expect_result(*context, 1 + t % 8, static_cast<float>(t));
    }
  });
  EXPECT_EQ(logger.text.size(), static_cast<size_t>(kThreads / 4 * kRounds / 10));
}

// The context keeps the engine's insides alive, whichever goes first.
TEST_F(ApiThreads, EnginesMayGoWhileTheirContextsRun) {
  const auto plan = build();
  on_threads([&](int t) {
    for (int i = 0; i < kRounds / 10; ++i) {
      std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
      const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
      std::thread other([&] { engine.reset(); });
      expect_result(*context, 3, static_cast<float>(t));
      other.join();
      ask(context->getEngine());
    }
  });
}

// S76, S152.
TEST_F(ApiThreads, EachBuildsItsOwn) {
  std::atomic<size_t> size = 0;
  on_threads([&](int) {
    const std::unique_ptr<IBuilder> own(createInferBuilder(logger));
    const std::unique_ptr<INetworkDefinition> mine(own->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> settings(own->createBuilderConfig());
    lathe::setBuildBudget(*settings, 0);
    ITensor* x = mine->addInput("x", DataType::kFLOAT, Dims2(4, 4));
    ITensor* y = mine->addActivation(*x, ActivationType::kTANH)->getOutput(0);
    y->setName("y");
    mine->markOutput(*y);
    const std::unique_ptr<IHostMemory> plan(own->buildSerializedNetwork(*mine, *settings));
    ASSERT_NE(plan, nullptr);
    size_t first = 0;
    size.compare_exchange_strong(first, plan->size());
    EXPECT_EQ(plan->size(), size);  // the same network, the same plan
  });
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

}  // namespace
}  // namespace nvinfer1
