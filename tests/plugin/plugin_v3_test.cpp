// SPDX-License-Identifier: Apache-2.0
// Networks with plugins: built, loaded, run.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "test_plugins.h"

namespace nvinfer1 {
namespace {

struct Messages : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    const std::lock_guard lock(mutex);
    if (severity <= Severity::kERROR) errors.emplace_back(message);
    if (severity == Severity::kWARNING) warnings.emplace_back(message);
  }
  std::string last() const { return errors.empty() ? "" : errors.back(); }
  std::mutex mutex;
  std::vector<std::string> errors, warnings;
};

class PluginV3 : public testing::Test {
 protected:
  void SetUp() override {
    lathe::setTarget(*config, "cpu");
    lathe::setBuildBudget(*config, 0);
    IPluginRegistry& registry = runtime->getPluginRegistry();
    ASSERT_TRUE(registry.registerCreator(scale_, "test"));
    ASSERT_TRUE(registry.registerCreator(nonzero_, "test"));
    ASSERT_TRUE(registry.registerCreator(in_place_, "test"));
    ASSERT_TRUE(registry.registerCreator(tactic_, "test"));
    alive_ = g_alive;
  }

  // x[n, 3], n up to 6, through the plugin; its outputs are y0, y1.
  IPluginV3Layer* add(IPluginV3& plugin) {
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 3));
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 3));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(2, 3));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(6, 3));
    config->addOptimizationProfile(profile);
    IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);
    if (!layer) return nullptr;
    layer->setName("the layer");
    for (int32_t i = 0; i < layer->getNbOutputs(); ++i) {
      layer->getOutput(i)->setName(("y" + std::to_string(i)).c_str());
      network->markOutput(*layer->getOutput(i));
    }
    return layer;
  }
  bool build() {
    plan.reset(builder->buildSerializedNetwork(*network, *config));
    return plan != nullptr;
  }
  bool load() {
    engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (engine) context.reset(engine->createExecutionContext());
    return context != nullptr;
  }
  struct Allocator : IOutputAllocator {
    void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t, cudaStream_t) override {
      memory.resize(size + 1);
      return memory.data();
    }
    void notifyShape(const char*, const Dims& shape) noexcept override { dims = shape; }
    std::vector<std::byte> memory;
    Dims dims{};
  };
  // Runs on rows of x; outputs are in allocators_.
  bool run(std::vector<float> x) {
    context->setInputShape("x", Dims2(static_cast<int64_t>(x.size()) / 3, 3));
    context->setTensorAddress("x", x.data());
    for (int32_t i = 0; i < engine->getNbIOTensors(); ++i) {
      const char* name = engine->getIOTensorName(i);
      if (engine->getTensorIOMode(name) == TensorIOMode::kOUTPUT) context->setOutputAllocator(name, &allocators_[name]);
    }
    const bool ran = context->enqueueV3(nullptr);
    x_ = x;
    return ran;
  }
  template <class T = float>
  std::vector<T> result(const std::string& name) {
    const Allocator& from = allocators_[name];
    int64_t count = 1;
    for (int32_t i = 0; i < from.dims.nbDims; ++i) count *= from.dims.d[i];
    const T* data = reinterpret_cast<const T*>(from.memory.data());
    return {data, data + count};
  }

  TestCreator<ScalePlugin> scale_{"Scale"};
  TestCreator<NonzeroPlugin> nonzero_{"Nonzero"};
  TestCreator<InPlacePlugin> in_place_{"InPlace"};
  TestCreator<TacticPlugin> tactic_{"Tactic"};
  int alive_ = 0;
  std::map<std::string, Allocator> allocators_;
  std::vector<float> x_;
  Messages logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
  std::unique_ptr<IHostMemory> plan;
  std::unique_ptr<ICudaEngine> engine;
  std::unique_ptr<IExecutionContext> context;
};

TEST_F(PluginV3, IsMadeAgainFromItsFields) {
  {
    ScalePlugin plugin("Scale", 2.5f, Lie::none);
    IPluginV3Layer* layer = add(plugin);
    ASSERT_NE(layer, nullptr) << logger.last();
    EXPECT_EQ(layer->getType(), LayerType::kPLUGIN_V3);
    EXPECT_NE(&layer->getPlugin(), &plugin) << "a clone is kept";
  }
  ASSERT_TRUE(build()) << logger.last();
  network.reset();
  EXPECT_EQ(g_alive, alive_);
  ASSERT_TRUE(load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 6})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{2.5, 5, 7.5, 10, 12.5, 15}));
  const int changes = g_shape_changes;
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 7}));
  EXPECT_EQ(g_shape_changes, changes) << "no shape has changed";
  ASSERT_TRUE(run({1, 2, 3}));
  EXPECT_EQ(g_shape_changes, changes + 1);
  EXPECT_EQ(result("y0"), (std::vector<float>{2.5, 5, 7.5}));
  EXPECT_EQ(logger.warnings.size(), 1u) << "that the plugin runs on the host";
  context.reset();
  engine.reset();
  EXPECT_EQ(g_alive, alive_);
}

TEST_F(PluginV3, EachContextHasItsOwnClone) {
  ScalePlugin plugin("Scale", 2, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::unique_ptr<IExecutionContext> own(engine->createExecutionContext());
      for (int round = 0; round < 20; ++round) {
        const int64_t rows = 1 + (t + round) % 6;
        std::vector<float> x(static_cast<size_t>(3 * rows), static_cast<float>(t + 1)), y(x.size());
        own->setInputShape("x", Dims2(rows, 3));
        own->setTensorAddress("x", x.data());
        own->setTensorAddress("y0", y.data());
        if (own->enqueueV3(nullptr) && y == std::vector<float>(x.size(), static_cast<float>(2 * (t + 1)))) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST_F(PluginV3, FindsOutSizes) {
  NonzeroPlugin plugin("Nonzero", 0, Lie::none);
  IPluginV3Layer* layer = add(plugin);
  ASSERT_NE(layer, nullptr) << logger.last();
  EXPECT_EQ(layer->getOutput(0)->getDimensions().d[0], -1);
  // What reads it works with the size that was found.
  ITensor* places = layer->getOutput(0);
  IElementWiseLayer* twice = network->addElementWise(*places, *places, ElementWiseOperation::kSUM);
  twice->getOutput(0)->setName("twice");
  network->markOutput(*twice->getOutput(0));
  ASSERT_TRUE(build()) << logger.last();
  ASSERT_TRUE(load()) << logger.last();
  ASSERT_TRUE(run({0, 5, 0, 1, 0, 2})) << logger.last();
  EXPECT_EQ(result<int64_t>("y1"), std::vector<int64_t>{3});
  EXPECT_EQ(result<int32_t>("y0"), (std::vector<int32_t>{0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(result<int32_t>("twice"), (std::vector<int32_t>{0, 2, 2, 0, 2, 4}));
  ASSERT_TRUE(run({0, 0, 0})) << logger.last();
  EXPECT_EQ(allocators_["y0"].dims.d[0], 0);
  ASSERT_TRUE(run(std::vector<float>(18, 1))) << logger.last();
  EXPECT_EQ(allocators_["y0"].dims.d[0], 18);
}

TEST_F(PluginV3, ChangesACopyInPlace) {
  config->setPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03, true);
  InPlacePlugin plugin("InPlace", 10, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 3})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{11, 12, 13}));
  EXPECT_EQ(x_, (std::vector<float>{1, 2, 3}));
}

TEST_F(PluginV3, IsNotAskedForAliasesUnlessThePreviewFeatureIsOn) {
  InPlacePlugin plugin("InPlace", 10, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  EXPECT_FALSE(run({1, 2, 3})) << "its input lies elsewhere than its output";
  EXPECT_NE(logger.last().find("enqueue() gives 12"), std::string::npos) << logger.last();
}

TEST_F(PluginV3, RunsTheTacticThatWasFastest) {
  TacticPlugin plugin("Tactic", 0, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 3})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{3, 3, 3}));
}

TEST_F(PluginV3, IsMissedWhereNoCreatorIs) {
  ScalePlugin plugin("Unknown", 2, Lie::none);
  ASSERT_TRUE(add(plugin) && build()) << logger.last();
  EXPECT_FALSE(load());
  EXPECT_EQ(logger.errors.size(), 1u);
  for (const char* part : {"plugin 'Unknown', version 1, of layer 'the layer'", "namespace 'test'", "loadLibrary()"})
    EXPECT_NE(logger.last().find(part), std::string::npos) << logger.last();
}

struct Case {
  Lie lie;
  const char* says;
  enum At { adding, building, loading, running } at;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.says; }

class PluginLies : public PluginV3, public testing::WithParamInterface<Case> {};

// One report, which names the callback and its answer, and no clone is left.
TEST_P(PluginLies, AreToldOnce) {
  const Case& c = GetParam();
  {
    ScalePlugin scale("Scale", 2, c.lie);
    NonzeroPlugin nonzero("Nonzero", 2, c.lie);
    const bool sizes = c.lie == Lie::size_too_large || c.lie == Lie::size_negative;
    if (c.lie == Lie::alias_wrong) config->setPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03, true);
    const bool added = add(sizes ? static_cast<IPluginV3&>(nonzero) : scale) != nullptr;
    ASSERT_EQ(added, c.at != Case::adding) << logger.last();
    if (added) {
      ASSERT_EQ(build(), c.at > Case::building) << logger.last();
      if (plan) {
        ASSERT_EQ(load(), c.at > Case::loading) << logger.last();
        if (context) {
          EXPECT_FALSE(run({1, 2, 3}));
        }
      }
    }
  }
  EXPECT_EQ(logger.errors.size(), 1u);
  EXPECT_NE(logger.last().find(c.says), std::string::npos) << logger.last();
  context.reset();
  engine.reset();
  network.reset();
  EXPECT_EQ(g_alive, alive_);
}

INSTANTIATE_TEST_SUITE_P(
    Callbacks, PluginLies,
    testing::Values(Case{Lie::clone_null, "clone() gives null", Case::adding},
                    Case{Lie::no_build, "getCapabilityInterface(kBUILD) gives null", Case::adding},
                    Case{Lie::no_name, "getPluginName() gives null", Case::adding},
                    Case{Lie::no_outputs, "getNbOutputs() gives 0", Case::adding},
                    Case{Lie::types_fail, "getOutputDataTypes() gives 7", Case::building},
                    Case{Lie::types_unknown, "getOutputDataTypes() gives output 0 the type 99", Case::building},
                    Case{Lie::shapes_fail, "getOutputShapes() gives 5", Case::building},
                    Case{Lie::shapes_null, "a dimension 0 that is null", Case::building},
                    Case{Lie::shapes_foreign, "a dimension 0 that is from elsewhere", Case::building},
                    Case{Lie::shapes_negative, "getOutputShapes() gives output 0 the size -4", Case::building},
                    Case{Lie::no_format, "supportsFormatCombination() refuses input 0", Case::building},
                    Case{Lie::configure_fails, "configurePlugin() gives 3", Case::building},
                    Case{Lie::huge_workspace, "getWorkspaceSize() gives 18446744073709551615", Case::building},
                    Case{Lie::tactics_fail, "getValidTactics() gives 9", Case::building},
                    Case{Lie::tactic_zero, "getValidTactics() gives tactic 0", Case::building},
                    Case{Lie::alias_wrong, "getAliasedInput() gives input 12 for output 0", Case::building},
                    Case{Lie::fields_null, "getFieldsToSerialize() gives null", Case::building},
                    Case{Lie::field_without_name, "field 0 has no name", Case::building},
                    Case{Lie::tactic_refused, "setTactic() gives 4", Case::building},
                    Case{Lie::attach_null, "attachToContext() gives null", Case::loading},
                    Case{Lie::shape_change_fails, "onShapeChange() gives 6", Case::running},
                    Case{Lie::enqueue_fails, "enqueue() gives 8", Case::running},
                    Case{Lie::size_too_large, "the value 1000; it has declared 0 to 3", Case::running},
                    Case{Lie::size_negative, "the value -1; it has declared 0 to 3", Case::running}));

}  // namespace
}  // namespace nvinfer1
