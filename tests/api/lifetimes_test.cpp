// SPDX-License-Identifier: Apache-2.0
// Objects may be deleted in any order: each keeps alive what it needs, and works on. Meant for AddressSanitizer, too.
#include <algorithm>
#include <functional>
#include <numeric>

#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "source_dir.h"

namespace nvinfer1 {
namespace {

// An object, and what shows that it still works.
struct Held {
  std::function<void()> use, drop;
};

template <class T, class Use>
Held hold(T* object, Use&& use) {
  const auto owner = std::make_shared<std::unique_ptr<T>>(object);
  return {[owner, use] { use(**owner); }, [owner] { owner->reset(); }};
}

// Drops them in each order; those that are left are used in between.
void drop_in_each_order(const std::function<std::vector<Held>()>& make) {
  std::vector<size_t> order(make().size());
  std::iota(order.begin(), order.end(), size_t{0});
  do {
    const std::vector<Held> objects = make();
    for (size_t i = 0; i < order.size(); ++i) {
      objects[order[i]].drop();
      for (size_t k = i + 1; k < order.size(); ++k) objects[order[k]].use();
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

using Lifetimes = EngineTest;

// S63.
TEST_F(Lifetimes, OfTheRuntimesObjects) {
  const auto plan = build();
  const float x[3] = {1, 2, 3};
  float y[2] = {};
  drop_in_each_order([&] {
    IRuntime* loader = createInferRuntime(logger);
    ICudaEngine* engine = loader->deserializeCudaEngine(plan->data(), plan->size());
    IRuntimeConfig* settings = engine->createRuntimeConfig();
    IExecutionContext* context = engine->createExecutionContext(settings);
    IEngineInspector* inspector = engine->createEngineInspector();
    EXPECT_TRUE(context->setInputShape("x", Dims2(1, 3)));
    EXPECT_TRUE(context->setInputTensorAddress("x", x));
    EXPECT_TRUE(context->setTensorAddress("y", y));
    return std::vector<Held>{
        hold(loader, [&](IRuntime& object) { EXPECT_EQ(object.getLogger(), &logger); }),
        hold(engine, [](ICudaEngine& object) { EXPECT_STREQ(object.getIOTensorName(0), "x"); }),
        hold(settings,
             [](IRuntimeConfig& object) {
               object.setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy::kSTATIC);
             }),
        hold(context,
             [&](IExecutionContext& object) {
               y[0] = 0;
               EXPECT_TRUE(object.enqueueV3(nullptr));
               EXPECT_EQ(y[0], 4);
               EXPECT_EQ(object.getEngine().getNbIOTensors(), 2);
             }),
        hold(inspector, [](IEngineInspector& object) {
          EXPECT_NE(*object.getEngineInformation(LayerInformationFormat::kONELINE), '\0');
        })};
  });
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// S63, S64.
TEST_F(Lifetimes, OfTheBuildersObjects) {
  const std::string digits = lathe::source_path("/examples/digits/digits.onnx");
  drop_in_each_order([&] {
    IBuilder* maker = createInferBuilder(logger);
    INetworkDefinition* model = maker->createNetworkV2(0);
    nvonnxparser::IParser* parser = nvonnxparser::createParser(*model, logger);
    EXPECT_TRUE(parser->parseFromFile(digits.c_str(), 2)) << logger.last();
    IBuilderConfig* settings = maker->createBuilderConfig();
    ITimingCache* cache = settings->createTimingCache(nullptr, 0);
    return std::vector<Held>{hold(maker, [](IBuilder& object) { EXPECT_EQ(object.getMaxThreads() >= 1, true); }),
                             hold(model, [](INetworkDefinition& object) { EXPECT_GT(object.getNbLayers(), 0); }),
                             hold(parser, [](nvonnxparser::IParser& object) { EXPECT_EQ(object.getNbErrors(), 0); }),
                             hold(settings, [](IBuilderConfig& object) { object.setFlag(BuilderFlag::kDEBUG); }),
                             hold(cache, [](ITimingCache& object) { EXPECT_EQ(object.queryKeys(nullptr, 0), 0); })};
  });
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// S63: who deletes in the wrong order is told, once for each object.
TEST_F(Lifetimes, MakersThatGoFirstWarn) {
  const auto plan = build();
  logger.most = ILogger::Severity::kWARNING;
  IRuntime* loader = createInferRuntime(logger);
  ICudaEngine* engine = loader->deserializeCudaEngine(plan->data(), plan->size());
  IExecutionContext* context = engine->createExecutionContext();
  logger.text.clear();
  const auto expect_warning = [&](const char* maker) {
    ASSERT_EQ(logger.text.size(), 1u);
    EXPECT_NE(logger.last().find(std::string(maker) + " is deleted before objects that it made"), std::string::npos);
    logger.text.clear();
  };
  delete engine;
  expect_warning("ICudaEngine");
  delete loader;
  expect_warning("IRuntime");
  delete context;
  EXPECT_TRUE(logger.text.empty());
  IBuilder* maker = createInferBuilder(logger);
  INetworkDefinition* model = maker->createNetworkV2(0);
  delete maker;
  expect_warning("IBuilder");
  delete model;
  maker = createInferBuilder(logger);
  delete maker->createNetworkV2(0);
  delete maker->createBuilderConfig();
  delete maker;
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// An engine needs nothing of what it was built with.
// S65.
TEST_F(Lifetimes, EnginesOutliveTheirBuilders) {
  std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
  ASSERT_NE(engine, nullptr) << logger.last();
  config.reset();
  network.reset();
  builder.reset();
  runtime.reset();
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  engine.reset();
  const float x[3] = {1, 2, 3};
  float y[2] = {};
  ASSERT_TRUE(context->setInputShape("x", Dims2(1, 3)));
  ASSERT_TRUE(context->setInputTensorAddress("x", x));
  ASSERT_TRUE(context->setTensorAddress("y", y));
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(y[0], 4);
}

}  // namespace
}  // namespace nvinfer1
