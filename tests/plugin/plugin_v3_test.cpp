// SPDX-License-Identifier: Apache-2.0
// Networks with plugins: built, loaded, run.
#include "plugin_fixture.h"

namespace nvinfer1 {
namespace {

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

// What the layer says comes before what its plugin does. On a CPU there is no memory to be asked for.
TEST_F(PluginV3, KnowsItsSurroundingsAndTellsOfItself) {
  class Curious final : public ScalePlugin {
   public:
    using ScalePlugin::ScalePlugin;
    HostPlugin* copy() const override { return new Curious(*this); }
    int32_t getOutputShapes(const DimsExprs* inputs, int32_t, const DimsExprs*, int32_t, DimsExprs* outputs, int32_t,
                            IExprBuilder&) noexcept override {
      outputs[0] = inputs[0];
      EXPECT_FALSE(inputs[0].d[0]->isConstant());
      EXPECT_TRUE(inputs[0].d[1]->isConstant());
      return inputs[0].d[1]->getConstantValue() == 3 ? 0 : 1;
    }
    const char* getMetadataString() noexcept override { return "scales by 2"; }
    IPluginV3* attachToContext(IPluginResourceContext* where) noexcept override {
      EXPECT_EQ(where->getGpuAllocator(), nullptr);
      return ScalePlugin::attachToContext(where);
    }
  };
  TestCreator<Curious> creator("Curious");
  ASSERT_TRUE(runtime->getPluginRegistry().registerCreator(creator, "test"));
  config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
  Curious plugin("Curious", 2, Lie::none);
  IPluginV3Layer* layer = add(plugin);
  ASSERT_NE(layer, nullptr) << logger.last();
  for (const char* const told : {"scales by 2", "said by the application"}) {
    ASSERT_TRUE(build() && load() && run({1, 2, 3})) << logger.last();
    EXPECT_EQ(result("y0"), (std::vector<float>{2, 4, 6}));
    const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
    const std::string text = inspector->getEngineInformation(LayerInformationFormat::kJSON);
    EXPECT_NE(text.find("\"Metadata\": \"" + std::string(told) + "\""), std::string::npos) << text;
    layer->setMetadata("said by the application");
  }
  context.reset(), engine.reset();
  EXPECT_TRUE(runtime->getPluginRegistry().deregisterCreator(creator));
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

// Of a plugin that has an id for the timing cache, tactics are measured once.
TEST_F(PluginV3, TimesOfTacticsAreKeptUnderItsId) {
  for (const float value : {0.0F, 1.0F}) {
    std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
    for (int round = 0; round < 2; ++round) {
      network.reset(builder->createNetworkV2(0)), config.reset(builder->createBuilderConfig());
      lathe::setTarget(*config, target());
      if (round == 0) cache.reset(config->createTimingCache(nullptr, 0));
      ASSERT_TRUE(config->setTimingCache(*cache, false));
      TacticPlugin plugin("Tactic", value, Lie::none);
      g_timed = 0;
      ASSERT_TRUE(add(plugin) && build()) << logger.last();
      EXPECT_EQ(g_timed == 0, value > 0 && round == 1);
      EXPECT_EQ(cache->queryKeys(nullptr, 0), value > 0 ? 1 : 0);
      ASSERT_TRUE(load() && run({1, 2, 3})) << logger.last();
      EXPECT_EQ(result("y0"), (std::vector<float>{3, 3, 3}));
    }
    context.reset(), engine.reset();
  }
}

// x * 2 * 2 * 2: a round of the loop is a run of the plugin.
TEST_F(PluginV3, RunsInALoop) {
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 3));
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  for (const auto& [at, rows] : {std::pair(OptProfileSelector::kMIN, 1), std::pair(OptProfileSelector::kOPT, 2),
                                 std::pair(OptProfileSelector::kMAX, 6)})
    profile->setDimensions("x", at, Dims2(rows, 3));
  config->addOptimizationProfile(profile);
  ILoop* loop = network->addLoop();
  const int32_t three = 3;
  ITensor* rounds = network->addConstant(Dims{0, {}}, {DataType::kINT32, &three, 1})->getOutput(0);
  loop->addTripLimit(*rounds, TripLimit::kCOUNT);
  IRecurrenceLayer* carried = loop->addRecurrence(*x);
  ScalePlugin plugin("Scale", 2, Lie::none);
  ITensor* before = carried->getOutput(0);
  ITensor* after = network->addPluginV3(&before, 1, nullptr, 0, plugin)->getOutput(0);
  carried->setInput(1, *after);
  ITensor* y = loop->addLoopOutput(*carried->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
  y->setName("y0");
  network->markOutput(*y);
  ASSERT_TRUE(build() && load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 6})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{8, 16, 24, 32, 40, 48}));
  ASSERT_TRUE(run({1, 2, 3})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{8, 16, 24}));
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
