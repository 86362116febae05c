// SPDX-License-Identifier: Apache-2.0
// Plugins as nodes of ONNX models: the parser finds their creators.
#include "NvOnnxParser.h"
#include "onnx/model_bytes.h"
#include "plugin_fixture.h"

namespace nvinfer1 {
namespace {

using namespace lathe::onnx;  // what writes the models

// Makes ScalePlugin, and notes the fields that it was given; refuses where there is a field "refuse".
class NotingCreator final : public IPluginCreatorV3One {
 public:
  struct Given {
    PluginFieldType type;
    int32_t length;
    std::string bytes;  // of numbers, as they lie there; of a string, with the zero behind it
    bool operator==(const Given& other) const {
      return type == other.type && length == other.length && bytes == other.bytes;
    }
  };
  IPluginV3* createPlugin(const char* name, const PluginFieldCollection* fields,
                          TensorRTPhase phase) noexcept override {
    if (phase == TensorRTPhase::kBUILD) {
      layer = name;
      given.clear();
      ++made;
    }
    float value = 1;
    for (int32_t i = 0; i < fields->nbFields; ++i) {
      const PluginField& field = fields->fields[i];
      if (std::string_view(field.name) == "refuse") return nullptr;
      if (std::string_view(field.name) == "value" && field.type == PluginFieldType::kFLOAT32)
        value = *static_cast<const float*>(field.data);
      if (phase == TensorRTPhase::kBUILD)
        given[field.name] = {field.type, field.length, {static_cast<const char*>(field.data), bytes_of_field(field)}};
    }
    return new ScalePlugin(getPluginName(), value, Lie::none);
  }
  const PluginFieldCollection* getFieldNames() noexcept override {
    collection_ = {static_cast<int32_t>(listed.size()), listed.data()};
    return &collection_;
  }
  const char* getPluginName() const noexcept override { return name; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return "test"; }

  const char* name = "Noting";
  std::vector<PluginField> listed;
  std::string layer;
  std::map<std::string, Given> given;
  int made = 0;

 private:
  static size_t bytes_of_field(const PluginField& field) {
    const auto length = static_cast<size_t>(field.length);
    switch (field.type) {
      case PluginFieldType::kCHAR:
        return length + 1;
      case PluginFieldType::kDIMS:
        return sizeof(Dims);
      case PluginFieldType::kINT8:
        return length;
      case PluginFieldType::kFLOAT16:
        return 2 * length;
      case PluginFieldType::kFLOAT64:
      case PluginFieldType::kINT64:
        return 8 * length;
      default:
        return 4 * length;
    }
  }
  PluginFieldCollection collection_{};
};

template <class T>
NotingCreator::Given field(PluginFieldType type, std::vector<T> values) {
  return {type,
          static_cast<int32_t>(values.size()),
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}};
}

const std::string kSpace = string_attribute("plugin_namespace", "test");

std::string tensor_attribute(const char* name, const std::string& tensor) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_message(5, tensor), w.add_int32(20, 4); });
}

class PluginParser : public PluginV3 {
 protected:
  void SetUp() override {
    PluginV3::SetUp();
    ASSERT_TRUE(builder->getPluginRegistry().registerCreator(noting_, "test"));
    ASSERT_TRUE(runtime->getPluginRegistry().registerCreator(noting_, "test"));
  }
  // x[2, 3] through the node into t, and y0 = t + t.
  bool parse(const std::string& plugin_node) {
    network.reset(builder->createNetworkV2(0));
    parser.reset(nvonnxparser::createParser(*network, logger));
    parser->setFlags(parser->getFlags() | flags);
    const std::string bytes = model(graph({{plugin_node, node("Add", {"t", "t"}, {"y0"})},
                                           {},
                                           {value_info("x", 1, {2, 3})},
                                           {value_info("y0", 1, {2, 3})}}),
                                    10, {opset(21), opset(1, "their.domain")});
    return parser->parse(bytes.data(), bytes.size());
  }
  static std::string noting(std::initializer_list<std::string> attributes) {
    return node("Noting", {"x"}, {"t"}, attributes, "their.domain");
  }
  NotingCreator noting_;
  nvonnxparser::OnnxParserFlags flags = 0;
  std::unique_ptr<nvonnxparser::IParser> parser;
};

TEST_F(PluginParser, NodesOfAnyDomainBecomeLayers) {
  ASSERT_TRUE(parse(noting({kSpace, string_attribute("plugin_version", "1"), real_attribute("value", 2.5F)})))
      << logger.last();
  ASSERT_EQ(network->getNbLayers(), 2);
  ILayer* layer = network->getLayer(0);
  ASSERT_EQ(layer->getType(), LayerType::kPLUGIN_V3);
  EXPECT_EQ(noting_.layer, layer->getName());
  EXPECT_EQ(layer->getNbInputs(), 1);
  EXPECT_STREQ(layer->getOutput(0)->getName(), "t");
  EXPECT_EQ(noting_.given.size(), 1u) << "version and namespace are no fields";
  parser.reset();
  ASSERT_TRUE(build() && load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 6})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{5, 10, 15, 20, 25, 30}));
}

TEST_F(PluginParser, AttributesBecomeFields) {
  ASSERT_TRUE(
      parse(noting({kSpace, real_attribute("value", 2), reals_attribute("reals", {1, 2}), int_attribute("number", -7),
                    ints_attribute("numbers", {1, int64_t{1} << 40}), string_attribute("text", "abc"),
                    tensor_attribute("tensor", raw_tensor<double>("", 11, {2, 1}, {3, 4}))})))
      << logger.last();
  EXPECT_EQ(noting_.given["value"], field<float>(PluginFieldType::kFLOAT32, {2}));
  EXPECT_EQ(noting_.given["reals"], field<float>(PluginFieldType::kFLOAT32, {1, 2}));
  EXPECT_EQ(noting_.given["number"], field<int32_t>(PluginFieldType::kINT32, {-7}));
  EXPECT_EQ(noting_.given["numbers"], field<int64_t>(PluginFieldType::kINT64, {1, int64_t{1} << 40}));
  EXPECT_EQ(noting_.given["text"], (NotingCreator::Given{PluginFieldType::kCHAR, 3, std::string("abc", 4)}));
  EXPECT_EQ(noting_.given["tensor"], field<double>(PluginFieldType::kFLOAT64, {3, 4}));
  EXPECT_TRUE(logger.warnings.empty());
}

// As the creator lists them; what it lists and the node has not, and the other way round, is told.
TEST_F(PluginParser, FieldsHaveTheTypesThatTheCreatorLists) {
  noting_.listed = {PluginField("wide", nullptr, PluginFieldType::kINT64, 1),
                    PluginField("small", nullptr, PluginFieldType::kINT8, 1),
                    PluginField("real", nullptr, PluginFieldType::kFLOAT64, 1),
                    PluginField("dims", nullptr, PluginFieldType::kDIMS, 1),
                    PluginField("missing", nullptr, PluginFieldType::kINT32, 1)};
  ASSERT_TRUE(parse(noting({kSpace, int_attribute("wide", 5), ints_attribute("small", {-128, 127}),
                            int_attribute("real", 3), ints_attribute("dims", {4, 5}), int_attribute("extra", 1)})))
      << logger.last();
  EXPECT_EQ(noting_.given["wide"], field<int64_t>(PluginFieldType::kINT64, {5}));
  EXPECT_EQ(noting_.given["small"], field<int8_t>(PluginFieldType::kINT8, {-128, 127}));
  EXPECT_EQ(noting_.given["real"], field<double>(PluginFieldType::kFLOAT64, {3}));
  Dims dims{2, {4, 5}};
  ASSERT_EQ(noting_.given["dims"].length, 1);
  EXPECT_EQ(std::memcmp(noting_.given["dims"].bytes.data(), &dims, sizeof dims), 0);
  EXPECT_FALSE(noting_.given.contains("extra"));
  ASSERT_EQ(logger.warnings.size(), 2u);
  EXPECT_NE(logger.warnings[0].find("attribute 'extra' is none of the fields"), std::string::npos);
  EXPECT_NE(logger.warnings[1].find("no attribute for field 'missing'"), std::string::npos);
}

TEST_F(PluginParser, WhatCannotBeIsRefusedWithTheNodesName) {
  noting_.listed = {PluginField("small", nullptr, PluginFieldType::kINT8, 1),
                    PluginField("number", nullptr, PluginFieldType::kINT32, 1),
                    PluginField("text", nullptr, PluginFieldType::kCHAR, 1),
                    PluginField("refuse", nullptr, PluginFieldType::kINT32, 1)};
  const struct {
    std::string node;
    std::vector<const char*> words;
  } cases[] = {
      {noting({kSpace, int_attribute("small", 128)}), {"attribute 'small'", "cannot hold 128"}},
      {noting({kSpace, real_attribute("number", 0.5F)}), {"attribute 'number'", "cannot hold 0.5"}},
      {noting({kSpace, string_attribute("number", "x")}), {"attribute 'number' is a string"}},
      {noting({kSpace, int_attribute("text", 1)}), {"attribute 'text' is numbers"}},
      {noting({kSpace, int_attribute("refuse", 1)}),
       {"plugin 'Noting', version 1", "createPlugin() gives null for the fields [refuse]"}},
      {node("Noting", {"x"}, {"t", "u"}, {kSpace}), {"the node has 2 outputs, and the plugin 1"}},
      {node("Noting", {"x", ""}, {"t"}, {kSpace}), {"input 1 is omitted"}},
      {noting({kSpace, ints_attribute("tensorrt_plugin_shape_input_indices", {1})}), {"names 1 inputs"}},
      {noting({kSpace, ints_attribute("tensorrt_plugin_shape_input_indices", {0})}),
       {"shape input 0 ('x') is no shape tensor"}},
      {noting({}),
       {"plugin 'Noting'", "version '1'", "namespace ''", "nvinfer_plugin", "initLibNvInferPlugins()",
        "loadLibrary()"}},
      {noting({kSpace, string_attribute("plugin_version", "2")}), {"version '2'", "namespace 'test'"}},
  };
  for (const auto& c : cases) {
    logger.errors.clear();
    EXPECT_FALSE(parse(c.node)) << c.words[0];
    EXPECT_EQ(logger.errors.size(), 1u) << c.words[0];
    for (const char* words : c.words)
      EXPECT_NE(logger.last().find(words), std::string::npos) << words << "\n" << logger.last();
    EXPECT_NE(logger.last().find("Noting"), std::string::npos) << logger.last();
    ASSERT_EQ(parser->getNbErrors(), 1);
    EXPECT_STREQ(parser->getError(0)->nodeOperator(), "Noting");
  }
  network.reset();
  EXPECT_EQ(g_alive, alive_);
}

TEST_F(PluginParser, ShapeInputsAreToldByTheirNumbers) {
  network.reset(builder->createNetworkV2(0));
  parser.reset(nvonnxparser::createParser(*network, logger));
  const std::string plugin = node("Noting", {"size", "x"}, {"y0"},
                                  {kSpace, ints_attribute("tensorrt_plugin_shape_input_indices", {0})}, "their.domain");
  const std::string bytes = model(
      graph(
          {{node("Shape", {"x"}, {"size"}), plugin}, {}, {value_info("x", 1, {2, 3})}, {value_info("y0", 1, {2, 3})}}),
      10, {opset(21), opset(1, "their.domain")});
  ASSERT_TRUE(parser->parse(bytes.data(), bytes.size())) << logger.last();
  EXPECT_EQ(noting_.given.size(), 0u);
  ASSERT_TRUE(build() && load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 6})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

// An application's creator goes before a standard plugin, and behind an operator of ONNX's.
class Named final : public IPluginCreatorV3One {
 public:
  explicit Named(const char* name) : name_(name) {}
  IPluginV3* createPlugin(const char*, const PluginFieldCollection*, TensorRTPhase) noexcept override {
    ++made;
    return new ScalePlugin("Scale", 10, Lie::none);
  }
  const PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  const char* getPluginName() const noexcept override { return name_; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return ""; }
  int made = 0;

 private:
  const char* name_;
};

TEST_F(PluginParser, CreatorsGoBeforeStandardPlugins) {
  Named leaky("LReLU_TRT"), relu("Relu");
  IPluginRegistry& registry = builder->getPluginRegistry();
  ASSERT_TRUE(parse(node("LReLU_TRT", {"x"}, {"t"}, {real_attribute("negSlope", 0.5F)}))) << logger.last();
  ASSERT_TRUE(registry.registerCreator(leaky, "") && registry.registerCreator(relu, ""));
  ASSERT_TRUE(parse(node("LReLU_TRT", {"x"}, {"t"}, {real_attribute("negSlope", 0.5F)}))) << logger.last();
  EXPECT_EQ(leaky.made, 1);
  EXPECT_EQ(network->getLayer(0)->getType(), LayerType::kPLUGIN_V3);
  ASSERT_TRUE(parse(node("Relu", {"x"}, {"t"}))) << logger.last();
  EXPECT_EQ(relu.made, 0);
  network.reset();
  EXPECT_TRUE(registry.deregisterCreator(leaky) && registry.deregisterCreator(relu));
}

// An operator of ONNX's is replaced where its node names a namespace of plugins, or the parser is told so.
TEST_F(PluginParser, CreatorsReplaceOperatorsWhenAsked) {
  NotingCreator relu;
  relu.name = "Relu";
  ASSERT_TRUE(builder->getPluginRegistry().registerCreator(relu, ""));
  ASSERT_TRUE(builder->getPluginRegistry().registerCreator(relu, "test"));
  ASSERT_TRUE(runtime->getPluginRegistry().registerCreator(relu, "test"));
  const auto kind_of = [&](const std::string& text) {
    EXPECT_TRUE(parse(text)) << logger.last();
    return network->getLayer(0)->getType();
  };
  EXPECT_EQ(kind_of(node("Relu", {"x"}, {"t"})), LayerType::kACTIVATION);
  EXPECT_EQ(kind_of(node("Relu", {"x"}, {"t"}, {kSpace, real_attribute("value", 4)})), LayerType::kPLUGIN_V3);
  ASSERT_TRUE(build() && load()) << logger.last();
  ASSERT_TRUE(run({-1, 2, 3, 4, 5, 6})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{-8, 16, 24, 32, 40, 48}));
  flags = 1u << static_cast<uint32_t>(nvonnxparser::OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE);
  EXPECT_EQ(kind_of(node("Relu", {"x"}, {"t"})), LayerType::kPLUGIN_V3);
  EXPECT_EQ(kind_of(node("Elu", {"x"}, {"t"})), LayerType::kACTIVATION);  // of which there is no creator
}

TEST_F(PluginParser, SupportIsTold) {
  parser.reset(nvonnxparser::createParser(*network, logger));
  EXPECT_TRUE(parser->supportsOperator("Noting"));
  EXPECT_FALSE(parser->supportsOperator("Nothing"));
  const auto whole = [&](const std::string& plugin) {
    const std::string bytes = model(graph({{plugin}, {}, {value_info("x", 1, {2, 3})}, {value_info("t", 1, {2, 3})}}),
                                    10, {opset(21), opset(1, "their.domain")});
    return parser->supportsModelV2(bytes.data(), bytes.size(), nullptr);
  };
  EXPECT_TRUE(whole(noting({kSpace}))) << logger.last();
  EXPECT_FALSE(whole(noting({})));
  EXPECT_EQ(g_alive, alive_);
}

// A loop of three rounds, and the branches of a condition, in which nodes have the same names.
TEST_F(PluginParser, NodesOfBodiesRun) {
  network.reset(builder->createNetworkV2(0));
  parser.reset(nvonnxparser::createParser(*network, logger));
  const auto twice = [](const char* from, const char* to, float value) {
    return node("Noting", {from}, {to}, {kSpace, real_attribute("value", value)}, "their.domain");
  };
  const auto branch = [&](float value) {
    return graph({{twice("after", "chosen", value), node("Exp", {"chosen"}, {"e"}), node("Log", {"e"}, {"l"})},
                  {},
                  {},
                  {value_info("l", 1, {2, 3})}});
  };
  const std::string body =
      graph({{node("Identity", {"going"}, {"goes"}), twice("before", "again", 2)},
             {},
             {value_info("round", 7, {}), value_info("going", 9, {}), value_info("before", 1, {2, 3})},
             {value_info("goes", 9, {}), value_info("again", 1, {2, 3})}});
  const std::string bytes =
      model(graph({{node("Loop", {"rounds", "", "x"}, {"after"}, {graph_attribute("body", body)}),
                    node("ReduceMax", {"x"}, {"most"}, {int_attribute("keepdims", 0)}),
                    node("Greater", {"most", "limit"}, {"large"}),
                    node("If", {"large"}, {"y0"},
                         {graph_attribute("then_branch", branch(-1)), graph_attribute("else_branch", branch(1))})},
                   {raw_tensor<int64_t>("rounds", 7, {}, {3}), raw_tensor<float>("limit", 1, {}, {10})},
                   {value_info("x", 1, {2, 3})},
                   {value_info("y0", 1, {2, 3})}}),
            10, {opset(21), opset(1, "their.domain")});
  ASSERT_TRUE(parser->parse(bytes.data(), bytes.size())) << logger.last();
  ASSERT_TRUE(build() && load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 1, 2, 1, 2})) << logger.last();
  const std::vector<float> small = result("y0");
  ASSERT_TRUE(run({11, 2, 1, 2, 1, 2})) << logger.last();
  const std::vector<float> large = result("y0");
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(small[i], i % 2 ? 16 : 8, 1e-4) << i;
  for (size_t i = 1; i < 6; ++i) EXPECT_NEAR(large[i], i % 2 ? -16 : -8, 1e-4) << i;
}

}  // namespace
}  // namespace nvinfer1
