// SPDX-License-Identifier: Apache-2.0
// TensorRT's standard plugins from the registry. What each computes is tested by nodes of models
// (tests/onnx/*_plugins_cli_test.py), which become the same ops.
#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include "onnx/model_bytes.h"
#include "plugin_fixture.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace nvinfer1 {
namespace {

// Reads what only fields hold, so that they are kept for it.
struct Fields {
  float slope = 0.25F, epsilon = 1e-5F, scales[3] = {1, 2, -1}, bias[3] = {0, 1, 2}, threshold = 0.5F;
  int32_t most = 4, none = -1, no = 0;
};

class StandardPlugins : public testing::Test {
 protected:
  void SetUp() override {
    lathe::setTarget(*config, "cpu");
    lathe::setBuildBudget(*config, 0);
  }
  template <class Creator>
  static Creator* creator(const char* name, const char* version) {
    return static_cast<Creator*>(getPluginRegistry()->getCreator(name, version, ""));
  }
  static PluginFieldCollection collection(const std::vector<PluginField>& fields) {
    return {static_cast<int32_t>(fields.size()), fields.data()};
  }
  struct Destroy {
    void operator()(IPluginV2* plugin) const { plugin->destroy(); }
  };
  using V2 = std::unique_ptr<IPluginV2, Destroy>;
  V2 make_v2(const char* name, const std::vector<PluginField>& fields) {
    const PluginFieldCollection all = collection(fields);
    auto* const made = creator<IPluginCreator>(name, "1");
    return V2(made ? made->createPlugin("layer", &all) : nullptr);
  }
  // The network's only output of its only input x.
  std::vector<float> run(ILayer& layer, const Dims& dims, std::vector<float> x) {
    layer.getOutput(0)->setName("y");
    network->markOutput(*layer.getOutput(0));
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << messages.last();
    if (!plan) return {};
    const std::unique_ptr<IRuntime> runtime(createInferRuntime(messages));
    const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    std::vector<float> y(x.size());
    context->setInputShape("x", dims);
    context->setTensorAddress("x", x.data());
    context->setTensorAddress("y", y.data());
    EXPECT_TRUE(context->enqueueV3(nullptr)) << messages.last();
    return y;
  }

  Messages messages;
  Fields values;
  std::unique_ptr<IBuilder> builder{createInferBuilder(messages)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
};

TEST_F(StandardPlugins, OfTheV2FamilyBecomeOpsOfTheNetwork) {
  ASSERT_TRUE(initLibNvInferPlugins(&messages, ""));
  const V2 plugin = make_v2("LReLU_TRT", {{"negSlope", &values.slope, PluginFieldType::kFLOAT32, 1}});
  ASSERT_NE(plugin, nullptr);
  EXPECT_STREQ(plugin->getPluginType(), "LReLU_TRT");
  EXPECT_STREQ(plugin->getPluginVersion(), "1");
  EXPECT_EQ(plugin->getNbOutputs(), 1);
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(2, 2));
  IPluginV2Layer* layer = network->addPluginV2(&x, 1, *plugin);
  ASSERT_NE(layer, nullptr) << messages.last();
  EXPECT_STREQ(layer->getPlugin().getPluginType(), "LReLU_TRT");
  EXPECT_EQ(layer->getOutput(0)->getDimensions().d[1], 2);
  EXPECT_EQ(run(*layer, Dims2(2, 2), {-4, 1, 2, -8}), (std::vector<float>{-1, 1, 2, -2}));
  EXPECT_EQ(messages.errors, std::vector<std::string>());
}

TEST_F(StandardPlugins, VersionsOfV3FollowThoseOfV2) {
  for (const char version : {'1', '2', '3', '4', '5', '6'}) {
    const char text[] = {version, 0};
    auto* const found = creator<IPluginCreatorInterface>("CustomQKVToContextPluginDynamic", text);
    ASSERT_NE(found, nullptr) << version;
    EXPECT_STREQ(found->getInterfaceInfo().kind, version < '4' ? "PLUGIN CREATOR_V1" : "PLUGIN CREATOR_V3ONE");
  }
  EXPECT_EQ(creator<IPluginCreatorInterface>("CustomQKVToContextPluginDynamic", "7"), nullptr);
}

TEST_F(StandardPlugins, TheNewestOfSeveralVersionsIsOfV3) {
  ASSERT_NE(creator<IPluginCreatorInterface>("InstanceNormalization_TRT", "2"), nullptr);
  EXPECT_EQ(creator<IPluginCreatorInterface>("InstanceNormalization_TRT", "4"), nullptr);
  auto* const made = creator<IPluginCreatorV3One>("InstanceNormalization_TRT", "3");
  ASSERT_NE(made, nullptr);
  ASSERT_EQ(made->getFieldNames()->nbFields, 5);
  EXPECT_STREQ(made->getFieldNames()->fields[1].name, "scales");
  const std::vector<PluginField> fields = {{"epsilon", &values.epsilon, PluginFieldType::kFLOAT32, 1},
                                           {"scales", values.scales, PluginFieldType::kFLOAT32, 3},
                                           {"bias", values.bias, PluginFieldType::kFLOAT32, 3}};
  const PluginFieldCollection all = collection(fields);
  const std::unique_ptr<IPluginV3> plugin(made->createPlugin("layer", &all, TensorRTPhase::kBUILD));
  ASSERT_NE(plugin, nullptr);
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4(1, 3, 1, 2));
  EXPECT_EQ(network->addPluginV3(&x, 1, &x, 1, *plugin), nullptr);
  IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, *plugin);
  ASSERT_NE(layer, nullptr) << messages.last();
  auto* const core =
      static_cast<IPluginV3OneCore*>(layer->getPlugin().getCapabilityInterface(PluginCapabilityType::kCORE));
  EXPECT_STREQ(core->getPluginName(), "InstanceNormalization_TRT");
  EXPECT_STREQ(core->getPluginVersion(), "3");
  const std::vector<float> y = run(*layer, Dims4(1, 3, 1, 2), {-1, 1, -10, 10, -100, 100});
  const float wanted[] = {-1, 1, -1, 3, 3, 1};
  ASSERT_EQ(y.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[i], wanted[i], 1e-4) << i;
}

// S249.
TEST_F(StandardPlugins, EfficientNmsIsThereAndDeprecated) {
  const V2 plugin = make_v2("EfficientNMS_TRT", {{"score_threshold", &values.threshold, PluginFieldType::kFLOAT32, 1},
                                                 {"iou_threshold", &values.threshold, PluginFieldType::kFLOAT32, 1},
                                                 {"max_output_boxes", &values.most, PluginFieldType::kINT32, 1},
                                                 {"background_class", &values.none, PluginFieldType::kINT32, 0},
                                                 {"score_activation", &values.no, PluginFieldType::kINT32, 1},
                                                 {"box_coding", &values.no, PluginFieldType::kINT32, 1}});
  ASSERT_NE(plugin, nullptr);
  ITensor* inputs[] = {network->addInput("boxes", DataType::kFLOAT, Dims3(-1, 10, 4)),
                       network->addInput("scores", DataType::kFLOAT, Dims3(-1, 10, 2))};
  messages.warnings.clear();
  IPluginV2Layer* layer = network->addPluginV2(inputs, 2, *plugin);
  ASSERT_NE(layer, nullptr) << messages.last();
  ASSERT_EQ(layer->getNbOutputs(), 4);
  EXPECT_EQ(layer->getOutput(1)->getDimensions().d[1], 4);
  EXPECT_EQ(layer->getOutput(1)->getDimensions().d[2], 4);
  EXPECT_EQ(layer->getOutput(3)->getType(), DataType::kINT32);
  ASSERT_FALSE(messages.warnings.empty());
  EXPECT_NE(messages.warnings.back().find("INMSLayer"), std::string::npos) << messages.warnings.back();
}

// What a field cannot do is told once, however often the layer is looked at.
TEST_F(StandardPlugins, WarnOfFieldsWithoutEffect) {
  const int32_t size = 4;
  const std::vector<PluginField> fields = {{"hidden_size", &size, PluginFieldType::kINT32, 1},
                                           {"num_heads", &values.most, PluginFieldType::kINT32, 1},
                                           {"dq_probs", &values.slope, PluginFieldType::kFLOAT32, 1}};
  const PluginFieldCollection all = collection(fields);
  const V2 plugin(creator<IPluginCreator>("CustomQKVToContextPluginDynamic", "3")->createPlugin("layer", &all));
  ASSERT_NE(plugin, nullptr);
  ITensor* inputs[] = {network->addInput("x", DataType::kFLOAT, Dims4(1, 12, 5, 1)),
                       network->addInput("starts", DataType::kINT32, Dims{1, {3}}),
                       network->addInput("longest", DataType::kINT32, Dims{1, {5}})};
  messages.warnings.clear();
  IPluginV2Layer* layer = network->addPluginV2(inputs, 3, *plugin);
  ASSERT_NE(layer, nullptr) << messages.last();
  EXPECT_EQ(layer->getOutput(0)->getDimensions().d[1], 4);
  layer->setName("attention");
  EXPECT_EQ(layer->getOutput(0)->getDimensions().d[2], 5);
  const auto tells = [](const std::string& text) { return text.find("dq_probs has no effect") != std::string::npos; };
  EXPECT_EQ(std::ranges::count_if(messages.warnings, tells), 1) << messages.last();
}

TEST_F(StandardPlugins, HaveAsManyOutputsAsAFieldSays) {
  const float ratios[] = {1, 2, 0.5F}, variance[] = {0.1F, 0.1F, 0.2F, 0.2F};
  const int32_t maps[] = {4, 2}, two = 2;
  const auto with_layers = [&](const int32_t& count) {
    return make_v2("GridAnchor_TRT", {{"aspectRatios", ratios, PluginFieldType::kFLOAT32, 3},
                                      {"variance", variance, PluginFieldType::kFLOAT32, 4},
                                      {"featureMapShapes", maps, PluginFieldType::kINT32, 2},
                                      {"numLayers", &count, PluginFieldType::kINT32, 1}});
  };
  const V2 plugin = with_layers(two);
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(plugin->getNbOutputs(), 2);
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4(3, 1, 4, 4));
  const ILayer* layer = network->addPluginV2(&x, 1, *plugin);
  ASSERT_NE(layer, nullptr) << messages.last();
  ASSERT_EQ(layer->getNbOutputs(), 2);
  const Dims dims = layer->getOutput(1)->getDimensions();  // of a map of 2 x 2, with a box more
  EXPECT_EQ(std::vector(dims.d, dims.d + dims.nbDims), (std::vector<int64_t>{3, 2, 4 * 4 * 4, 1}));
  EXPECT_EQ(make_v2("GridAnchor_TRT", {})->getNbOutputs(), 6);
  EXPECT_EQ(with_layers(values.no), nullptr);
}

TEST_F(StandardPlugins, WrongFieldsAreRefused) {
  const std::vector<std::pair<PluginField, const char*>> wrong = {
      {{"slope", &values.slope, PluginFieldType::kFLOAT32, 1}, "no field 'slope'; it has negSlope"},
      {{"negSlope", &values.most, PluginFieldType::kINT32, 1}, "field 'negSlope'"},
      {{"negSlope", values.scales, PluginFieldType::kFLOAT32, 2}, "length 2"},
      {{"negSlope", nullptr, PluginFieldType::kFLOAT32, 1}, "field 'negSlope'"},
      {{nullptr, &values.slope, PluginFieldType::kFLOAT32, 1}, "no field ''"},
      {{"negSlope", &values.slope, PluginFieldType::kUNKNOWN, 1}, "field 'negSlope'"},
  };
  for (const auto& [field, words] : wrong) {
    EXPECT_EQ(make_v2("LReLU_TRT", {field}), nullptr) << words;
    EXPECT_NE(std::string(lathe::lastError()).find(words), std::string::npos) << lathe::lastError();
  }
  // What is missing, or out of its range, is told of the layer.
  const float infinity = std::numeric_limits<float>::infinity();
  const std::pair<std::vector<PluginField>, const char*> refused[] = {
      {{}, "plugin 'LReLU_TRT': the plugin needs field 'negSlope'"},
      {{{"negSlope", &infinity, PluginFieldType::kFLOAT32, 1}},
       "plugin 'LReLU_TRT': field 'negSlope' is inf, expected a finite number"}};
  for (const auto& [fields, words] : refused) {
    const V2 plugin = make_v2("LReLU_TRT", fields);
    ASSERT_NE(plugin, nullptr);
    network.reset(builder->createNetworkV2(0));
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(2, 2));
    IPluginV2Layer* layer = network->addPluginV2(&x, 1, *plugin);
    ASSERT_NE(layer, nullptr);
    network->markOutput(*layer->getOutput(0));
    EXPECT_EQ(std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config)), nullptr);
    EXPECT_NE(messages.last().find(words), std::string::npos) << messages.last();
  }
}

// An application's creator goes before a standard one, in the registry and for nodes of models.
TEST_F(StandardPlugins, GiveWayToThoseOfTheApplication) {
  class Own final : public IPluginCreator {
   public:
    const PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
    IPluginV2* createPlugin(const char*, const PluginFieldCollection*) noexcept override { return ++made, nullptr; }
    IPluginV2* deserializePlugin(const char*, const void*, size_t) noexcept override { return nullptr; }
    const char* getPluginName() const noexcept override { return "LReLU_TRT"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    void setPluginNamespace(const char*) noexcept override {}
    const char* getPluginNamespace() const noexcept override { return ""; }
    int made = 0;
  } own;
  namespace onnx = lathe::onnx;
  const std::string bytes =
      onnx::model(onnx::graph({{onnx::node("LReLU_TRT", {"x"}, {"y"}, {onnx::real_attribute("negSlope", 0.5F)})},
                               {},
                               {onnx::value_info("x", 1, {2, 2})},
                               {onnx::value_info("y", 1, {2, 2})}}));
  const auto parses = [&] {
    const std::unique_ptr<INetworkDefinition> parsed(builder->createNetworkV2(0));
    const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*parsed, messages));
    return parser->parse(bytes.data(), bytes.size());
  };
  IPluginRegistry& registry = *getPluginRegistry();
  auto* const standard = registry.getCreator("LReLU_TRT", "1", "");
  EXPECT_TRUE(parses()) << messages.last();
  int32_t before = 0, after = 0;
  registry.getAllCreators(&before);
  ASSERT_TRUE(registry.registerCreator(own, ""));
  registry.getAllCreators(&after);
  EXPECT_EQ(after, before);
  EXPECT_EQ(registry.getCreator("LReLU_TRT", "1", ""), &own);
  EXPECT_FALSE(parses());
  EXPECT_EQ(own.made, 1);
  ASSERT_TRUE(registry.deregisterCreator(own));
  EXPECT_EQ(registry.getCreator("LReLU_TRT", "1", ""), standard);
}

}  // namespace
}  // namespace nvinfer1
