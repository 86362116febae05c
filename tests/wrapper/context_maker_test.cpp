// SPDX-License-Identifier: Apache-2.0
// How contexts are created of engines with and without IRuntimeConfig, by engines that write down what is asked of
// them.
#include "wrapper/context_maker.h"

#include <gtest/gtest.h>

#include "fixtures/warnings.h"
#include "lathe.h"

namespace lathe::wrapper {
namespace {

namespace nv = nvinfer1;
using Strategy = nv::ExecutionContextAllocationStrategy;
using Events = std::vector<std::string>;

struct FakeContext {
  std::string made_with;
};

// Of generations before IRuntimeConfig.
struct OldEngine {
  FakeContext* createExecutionContext(Strategy strategy) {
    events.push_back("create " + std::to_string(static_cast<int>(strategy)));
    return new FakeContext{"strategy"};
  }
  Events events;
};

// Of generations with IRuntimeConfig and nothing in it but the allocation strategy.
struct PlainConfig {
  Events* events;
  void setExecutionContextAllocationStrategy(Strategy strategy) {
    events->push_back("allocation " + std::to_string(static_cast<int>(strategy)));
  }
};
struct PlainEngine : OldEngine {
  PlainConfig* createRuntimeConfig() {
    events.emplace_back("config");
    return new PlainConfig{&events};
  }
  using OldEngine::createExecutionContext;
  FakeContext* createExecutionContext(PlainConfig*) {
    events.emplace_back("create by config");
    return new FakeContext{"config"};
  }
};

// Of those with all of it.
struct Blob {
  std::string bytes;
  void* data() { return bytes.data(); }
  size_t size() const { return bytes.size(); }
};
struct FakeCache {
  Blob* serialize() const { return new Blob{"kernels"}; }
  bool deserialize(const void*, size_t) { return true; }
};
enum class Kernels { lazy, eager, none };
enum class Graphs { disabled, whole };
struct WholeConfig : PlainConfig {
  FakeCache* createRuntimeCache() const { return new FakeCache; }
  bool setRuntimeCache(const FakeCache&) { return events->push_back("cache"), true; }
  void setDynamicShapesKernelSpecializationStrategy(Kernels to) {
    kernels = to;
    events->push_back("kernels " + std::to_string(static_cast<int>(to)));
  }
  Kernels getDynamicShapesKernelSpecializationStrategy() const { return kernels; }
  bool setCudaGraphStrategy(Graphs to) {
    graphs = to;
    return events->push_back("graphs " + std::to_string(static_cast<int>(to))), true;
  }
  Graphs getCudaGraphStrategy() const { return graphs; }
  Kernels kernels = Kernels::lazy;
  Graphs graphs = Graphs::disabled;
};
struct WholeEngine : OldEngine {
  WholeConfig* createRuntimeConfig() {
    events.emplace_back("config");
    return new WholeConfig{{&events}};
  }
  using OldEngine::createExecutionContext;
  FakeContext* createExecutionContext(WholeConfig*) {
    events.emplace_back("create by config");
    return new FakeContext{"config"};
  }
};

const EngineSettings kAll{"", Specialization::none, GraphStrategy::whole_graph_capture};

// S198, S202, S205: an engine of an interface without IRuntimeConfig has the allocation strategy that was asked for;
// what it lacks is said once.
TEST(ContextMaker, WithoutConfig) {
  static_assert(!features_of<OldEngine>().runtimeConfig && !features_of<OldEngine>().runtimeCache);
  for (const auto& [allocation, number] :
       {std::pair(ResourceAllocation::kSTATIC, "0"), std::pair(ResourceAllocation::kDYNAMIC, "2")}) {
    OldEngine engine;
    Warnings log;
    ContextMaker<OldEngine> maker;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(maker.create(engine, allocation, kAll, log)->made_with, "strategy");
    EXPECT_EQ(engine.events, Events(2, std::string("create ") + number));
    EXPECT_EQ(log.lines.size(), 2u) << "of kernels and graphs, once";
  }
}

TEST(ContextMaker, WithoutCachesAPathIsWarnedOf) {
  OldEngine engine;
  Warnings log;
  ContextMaker<OldEngine> maker;
  maker.load_cache(engine, {"kernels.cache"}, log);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].find("'kernels.cache'"), std::string::npos);
  maker.save_cache(log);
  maker.load_cache(engine, {}, log);
  EXPECT_EQ(log.lines.size(), 1u);
}

// S201, S203, S204: with it the settings go there, and a context is made of it.
TEST(ContextMaker, WithAConfigOfAllocationAlone) {
  static_assert(features_of<PlainEngine>().runtimeConfig && !features_of<PlainEngine>().cudaGraphStrategy);
  PlainEngine engine;
  Warnings log;
  ContextMaker<PlainEngine> maker;
  EXPECT_EQ(maker.create(engine, ResourceAllocation::kDYNAMIC, kAll, log)->made_with, "config");
  EXPECT_EQ(engine.events, (Events{"config", "allocation 2", "create by config"}));
  EXPECT_EQ(log.lines.size(), 2u);
}

// S192, S193: each time in the same order, with the same settings: the cache is saved, a config is there, then it has
// the allocation strategy and the rest, then the context is made.
TEST(ContextMaker, WithAllOfIt) {
  static_assert(features_of<WholeEngine>().runtimeCache && features_of<WholeEngine>().specialization);
  WholeEngine engine;
  Warnings log;
  ContextMaker<WholeEngine> maker;
  ASSERT_NE(maker.create(engine, ResourceAllocation::kSTATIC, kAll, log), nullptr);
  EXPECT_EQ(engine.events, (Events{"config", "allocation 0", "kernels 2", "graphs 1", "create by config"}));
  engine.events.clear();
  ASSERT_NE(maker.create(engine, ResourceAllocation::kDYNAMIC, kAll, log), nullptr);
  EXPECT_EQ(engine.events, (Events{"allocation 2", "create by config"})) << "one config, whose strategies stay";
  EngineSettings off = kAll;
  off.graphs = GraphStrategy::disabled;
  engine.events.clear();
  ASSERT_NE(maker.create(engine, ResourceAllocation::kDYNAMIC, off, log), nullptr);
  EXPECT_EQ(engine.events, (Events{"allocation 2", "graphs 0", "create by config"}));
  EXPECT_TRUE(log.lines.empty());
}

// S212, S215.
TEST(EngineSettings, SizesAreOpenUntilTheyAreKnown) {
  EXPECT_TRUE(EngineSettings().dynamic_inputs);
  EXPECT_FALSE(is_capturable(EngineSettings().specialization, EngineSettings().dynamic_inputs));
}

}  // namespace
}  // namespace lathe::wrapper
