// SPDX-License-Identifier: Apache-2.0
// Each class of the interface, used by 16 threads at once as its rule in docs/operating.md says: objects that threads
// may share are shared, of the others each thread has its own. What the rule forbids fails with a report, and harms
// nothing. Meant for ThreadSanitizer and Helgrind, too.
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <latch>
#include <thread>

#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "lathe_artifacts.h"
#include "source_dir.h"

namespace nvinfer1 {
namespace {

constexpr int kThreads = 16;
constexpr int kRounds = 4;
const std::string kDigits = lathe::source_path("/examples/digits/digits.onnx");

void on_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  std::latch start(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < kRounds; ++i) work(t);
    });
  for (std::thread& thread : threads) thread.join();
}

template <class T>
std::unique_ptr<T> own(T* object) {
  EXPECT_NE(object, nullptr);
  return std::unique_ptr<T>(object);
}

class ClassThreads : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    config->setFlag(BuilderFlag::kREFIT);
    network->getLayer(0)->setName("w");
    plan = build();
    engine = load(*plan);
    ASSERT_NE(engine, nullptr);
  }
  void TearDown() override { EXPECT_TRUE(logger.text.empty()) << logger.last(); }
  // Threads share what they must not: of the calls that fail each has one report, which says why; some succeed.
  void expect_detected(const std::function<bool(int)>& call) {
    std::atomic<int> refused = 0, done = 0;
    on_threads([&](int t) { ++(call(t) ? done : refused); });
    EXPECT_GT(done, 0);
    EXPECT_EQ(logger.text.size(), static_cast<size_t>(refused.load())) << logger.last();
    for (const std::string& text : logger.text) EXPECT_NE(text.find("LATHE-9002"), std::string::npos) << text;
    logger.text.clear();
  }

  std::unique_ptr<IHostMemory> plan;
};

// Shared: IRuntime, ICudaEngine, IHostMemory, and functions of lathe.h.
TEST_F(ClassThreads, RuntimesEnginesAndTheirMemory) {
  on_threads([&](int) {
    const auto loaded = own(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    const auto bytes = own(engine->serialize()), again = own(loaded->serialize());
    EXPECT_EQ(bytes->size(), again->size());
    EXPECT_EQ(std::memcmp(bytes->data(), again->data(), again->size()), 0);
    EXPECT_EQ(engine->getNbOptimizationProfiles(), 1);
    EXPECT_TRUE(engine->isRefittable());
    EXPECT_STREQ(engine->getIOTensorName(0), "x");
    EXPECT_EQ(runtime->getLogger(), &logger);
    EXPECT_NE(own(lathe::planJson(plan->data(), plan->size())), nullptr);
    EXPECT_NE(own(lathe::doctorJson()), nullptr);
  });
}

// Of each thread: IExecutionContext, IRuntimeConfig, ISerializationConfig, IEngineInspector. Shared: IRuntimeCache.
TEST_F(ClassThreads, WhatEnginesMake) {
  const auto shared = own(own(engine->createRuntimeConfig())->createRuntimeCache());
  on_threads([&](int t) {
    const auto settings = own(engine->createRuntimeConfig());
    EXPECT_TRUE(settings->setRuntimeCache(*shared));
    const auto context = own(engine->createExecutionContext(settings.get()));
    const float x[3] = {1, 2, static_cast<float>(t)};
    float y[2] = {};
    EXPECT_TRUE(context->setInputShape("x", Dims2(1, 3)) && context->setInputTensorAddress("x", x) &&
                context->setTensorAddress("y", y) && context->enqueueV3(nullptr));
    if (!on_real_gpu()) {
      EXPECT_EQ(y[0], static_cast<float>(1 + t));
    }
    const auto bytes = own(shared->serialize());
    EXPECT_TRUE(shared->deserialize(bytes->data(), bytes->size()));
    if (t == 0) {
      EXPECT_TRUE(shared->reset());
    }
    const auto form = own(engine->createSerializationConfig());
    EXPECT_TRUE(form->setFlag(SerializationFlag::kINCLUDE_REFIT));
    EXPECT_GT(own(engine->serializeWithConfig(*form))->size(), 0u);
    const auto inspector = own(engine->createEngineInspector());
    EXPECT_TRUE(inspector->setExecutionContext(context.get()));
    EXPECT_NE(*inspector->getEngineInformation(LayerInformationFormat::kJSON), '\0');
  });
}

// Of each thread: IBuilder and all that it makes, the parser and its refitter. Shared: ITimingCache.
TEST_F(ClassThreads, BuildersAndParsers) {
  const auto shared = own(config->createTimingCache(nullptr, 0));
  on_threads([&](int) {
    const auto maker = own(createInferBuilder(logger));
    const auto model = own(maker->createNetworkV2(0));
    const auto parser = own(nvonnxparser::createParser(*model, logger));
    EXPECT_TRUE(parser->parseFromFile(kDigits.c_str(), 1));
    const auto settings = own(maker->createBuilderConfig());
    lathe::setBuildBudget(*settings, 0);
    settings->setFlag(BuilderFlag::kREFIT);
    EXPECT_TRUE(settings->setTimingCache(*shared, false));
    EXPECT_GE(shared->queryKeys(nullptr, 0), 0);
    EXPECT_TRUE(shared->combine(*settings->getTimingCache(), false));
    EXPECT_GT(own(shared->serialize())->size(), 0u);
    const auto built = own(maker->buildEngineWithConfig(*model, *settings));
    if (!built) return;
    const auto refitter = own(createInferRefitter(*built, logger));
    const auto weights = own(nvonnxparser::createParserRefitter(*refitter, logger));
    EXPECT_TRUE(weights->refitFromFile(kDigits.c_str()) && refitter->refitCudaEngine());
  });
}

// Shared: the engine that several refitters change while contexts run. Each thread has its refitter and context.
TEST_F(ClassThreads, RefittersOfOneEngine) {
  const float scaled[6] = {2, 0, 0, 2, 2, 2};
  on_threads([&](int t) {
    const auto refitter = own(createInferRefitter(*engine, logger));
    const Weights weights{DataType::kFLOAT, t % 2 ? scaled : w, 6};
    EXPECT_TRUE(refitter->setWeights("w", WeightsRole::kCONSTANT, weights)) << logger.last();
    EXPECT_TRUE(refitter->refitCudaEngine()) << logger.last();
    const auto context = own(engine->createExecutionContext());
    const float x[3] = {1, 2, 3};
    float y[2] = {};
    EXPECT_TRUE(context->setInputShape("x", Dims2(1, 3)) && context->setInputTensorAddress("x", x) &&
                context->setTensorAddress("y", y) && context->enqueueV3(nullptr));
    EXPECT_TRUE(on_real_gpu() || y[0] == 4 || y[0] == 8) << "torn weights: " << y[0];
  });
}

struct Creator : IPluginCreatorV3One {
  explicit Creator(int number) : name("Thread" + std::to_string(number)) {}
  IPluginV3* createPlugin(const char*, const PluginFieldCollection*, TensorRTPhase) noexcept override {
    return nullptr;
  }
  const PluginFieldCollection* getFieldNames() noexcept override { return &fields; }
  const char* getPluginName() const noexcept override { return name.c_str(); }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return "threads"; }
  const std::string name;
  PluginFieldCollection fields{0, nullptr};
};

// Shared: IPluginRegistry.
TEST_F(ClassThreads, PluginRegistries) {
  IPluginRegistry& registry = *getPluginRegistry();
  on_threads([&](int t) {
    Creator creator(t);
    EXPECT_TRUE(registry.registerCreator(creator, "threads"));
    EXPECT_EQ(registry.getCreator(creator.name.c_str(), "1", "threads"), &creator);
    int32_t count = 0;
    EXPECT_NE(registry.getAllCreators(&count), nullptr);
    EXPECT_GT(count, 0);
    EXPECT_TRUE(registry.deregisterCreator(creator));
    EXPECT_EQ(registry.getCreator(creator.name.c_str(), "1", "threads"), nullptr);
  });
}

// Functions of lathe_artifacts.h: one thread builds, the others find what it has built.
TEST_F(ClassThreads, FoldersOfEngines) {
  namespace fs = std::filesystem;
  char name[] = "/tmp/lathe_threads_XXXXXX";
  const fs::path folder = ::mkdtemp(name);
  const std::string request = R"({"onnx": ")" + kDigits + R"(", "directory": ")" + folder.string() +
                              R"(", "target": "cpu", "budget_seconds": 0})";
  std::mutex mutex;
  std::string first;
  on_threads([&](int t) {
    const auto built = own(lathe::artifactPlan(request.c_str(), logger));
    if (!built) return;
    const std::string bytes(static_cast<const char*>(built->data()), built->size());
    {
      const std::lock_guard lock(mutex);
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first);
    }
    if (t % 4 == 0) {
      EXPECT_NE(own(lathe::artifactExplainJson(request.c_str())), nullptr);
      EXPECT_NE(own(lathe::artifactsJson(folder.c_str())), nullptr);
      EXPECT_GE(lathe::pruneArtifacts(folder.c_str(), INT64_MAX), 0);
    }
  });
  fs::remove_all(folder);
}

TEST_F(ClassThreads, ThatShareARuntimeConfigurationAreTold) {
  const auto settings = own(engine->createRuntimeConfig());
  expect_detected([&](int t) {
    const auto strategy = t % 2 ? CudaGraphStrategy::kDISABLED : CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE;
    return settings->setCudaGraphStrategy(strategy);
  });
}

TEST_F(ClassThreads, ThatShareASerializationConfigurationAreTold) {
  const auto form = own(engine->createSerializationConfig());
  expect_detected([&](int) { return form->setFlag(SerializationFlag::kINCLUDE_REFIT); });
}

TEST_F(ClassThreads, ThatShareARefitterAreTold) {
  const auto refitter = own(createInferRefitter(*engine, logger));
  expect_detected([&](int) { return refitter->refitCudaEngine(); });
  expect_detected([&](int t) { return refitter->setMaxThreads(1 + t); });
}

TEST_F(ClassThreads, ThatShareAParserRefitterAreTold) {
  const auto refitter = own(createInferRefitter(*engine, logger));
  const auto weights = own(nvonnxparser::createParserRefitter(*refitter, logger));
  std::atomic<int> failed = 0;
  on_threads([&](int) { failed += !weights->refitFromFile(kDigits.c_str()); });
  EXPECT_EQ(logger.text.size(), static_cast<size_t>(failed.load())) << logger.last();
  logger.text.clear();
}

TEST_F(ClassThreads, ThatShareAParserAreTold) {
  const auto parser = own(nvonnxparser::createParser(*network, logger));
  expect_detected([&](int) { return parser->supportsOperator("Relu"); });
}

// The refitter that a parser's refitter feeds may go first.
TEST_F(ClassThreads, ParserRefittersOutliveTheirRefitters) {
  auto refitter = own(createInferRefitter(*engine, logger));
  const auto weights = own(nvonnxparser::createParserRefitter(*refitter, logger));
  refitter.reset();
  EXPECT_FALSE(weights->refitFromFile(kDigits.c_str()));
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.last().find("the refitter that the weights are for is gone"), std::string::npos) << logger.last();
  EXPECT_EQ(weights->getNbErrors(), 1);
  logger.text.clear();
}

}  // namespace
}  // namespace nvinfer1
