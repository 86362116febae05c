// SPDX-License-Identifier: Apache-2.0
// Layers of attentions and their neighbours compute what the ONNX operator of the same meaning does, on random inputs.
#include <functional>
#include <map>
#include <random>

#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "onnx/model_bytes.h"

namespace nvinfer1 {
namespace {

using namespace lathe::onnx;  // what writes the models

constexpr int kFloats = 1, kIntegers = 7, kTruths = 9;  // element types of ONNX

struct Given {
  std::string name;
  int type;
  std::vector<int64_t> dims;
  std::vector<float> floats{};
  std::vector<int64_t> integers{};
  std::vector<uint8_t> truths{};

  DataType data_type() const {
    return type == kFloats ? DataType::kFLOAT : type == kIntegers ? DataType::kINT64 : DataType::kBOOL;
  }
  const void* data() const {
    return type == kFloats     ? static_cast<const void*>(floats.data())
           : type == kIntegers ? static_cast<const void*>(integers.data())
                               : truths.data();
  }
  Dims shape() const {
    Dims shape{static_cast<int32_t>(dims.size()), {}};
    std::copy(dims.begin(), dims.end(), shape.d);
    return shape;
  }
};

using Inputs = std::map<std::string, ITensor*>;

class OnnxTwins : public testing::Test {
 protected:
  Given floats(const char* name, std::vector<int64_t> dims) {
    Given given{name, kFloats, std::move(dims)};
    given.floats.resize(volume(given.dims));
    for (float& value : given.floats) value = std::uniform_real_distribution<float>(-1, 1)(generator);
    return given;
  }
  static Given integers(const char* name, std::vector<int64_t> dims, std::vector<int64_t> values) {
    return {name, kIntegers, std::move(dims), {}, std::move(values)};
  }
  static size_t volume(const std::vector<int64_t>& dims) {
    int64_t product = 1;
    for (const int64_t dim : dims) product *= dim;
    return static_cast<size_t>(product);
  }
  // What the network computes of the inputs: y.
  std::vector<float> run(INetworkDefinition& network, const std::vector<Given>& given, size_t count) {
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    lathe::setBuildBudget(*config, 0);
    config->clearFlag(BuilderFlag::kTF32);
    std::vector<float> y(count, -77);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(network, *config));
    EXPECT_NE(plan, nullptr) << logger.last();
    if (!plan) return y;
    const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    for (const Given& each : given)
      EXPECT_TRUE(context->setInputTensorAddress(each.name.c_str(), each.data())) << logger.last();
    EXPECT_TRUE(context->setTensorAddress("y", y.data())) << logger.last();
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    return y;
  }
  // The layer that `add` adds over the inputs, and the node, whose result has these dims.
  void expect_same(const std::vector<Given>& given, const std::vector<int64_t>& dims,
                   const std::function<ITensor*(INetworkDefinition&, const Inputs&)>& add, const std::string& node) {
    const std::unique_ptr<INetworkDefinition> layers(builder->createNetworkV2(0));
    Inputs inputs;
    GraphParts parts{{node}, {}, {}, {value_info_of("y", kFloats, dims)}};
    for (const Given& each : given) {
      inputs[each.name] = layers->addInput(each.name.c_str(), each.data_type(), each.shape());
      parts.inputs.push_back(value_info_of(each.name, each.type, each.dims));
    }
    ITensor* y = add(*layers, inputs);
    ASSERT_NE(y, nullptr) << logger.last();
    y->setName("y");
    layers->markOutput(*y);
    const std::unique_ptr<INetworkDefinition> parsed(builder->createNetworkV2(0));
    const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*parsed, logger));
    const std::string bytes = model(graph(parts), 11, {opset(24)});
    ASSERT_TRUE(parser->parse(bytes.data(), bytes.size())) << logger.last();
    const std::vector<float> from_layers = run(*layers, given, volume(dims)),
                             from_node = run(*parsed, given, volume(dims));
    bool any = false;
    for (size_t i = 0; i < from_layers.size(); ++i) {
      EXPECT_NEAR(from_layers[i], from_node[i], 1e-5) << i;
      any = any || from_layers[i] != 0;
    }
    EXPECT_TRUE(any);
  }
  static std::string value_info_of(const std::string& name, int type, const std::vector<int64_t>& dims) {
    const std::string shape = message([&](Writer& w) {
      for (const int64_t dim : dims) w.add_message(1, message([&](Writer& d) { d.add_int64(1, dim); }));
    });
    const std::string tensor = message([&](Writer& w) { w.add_int32(1, type), w.add_message(2, shape); });
    const std::string type_proto = message([&](Writer& w) { w.add_message(1, tensor); });
    return message([&](Writer& w) { w.add_string(1, name), w.add_message(2, type_proto); });
  }

  Errors logger;
  std::mt19937 generator{11};
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
};

// ONNX scales the scores by default; the layer does not.
TEST_F(OnnxTwins, Attention) {
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(causal);
    expect_same(
        {floats("q", {2, 4, 3, 8}), floats("k", {2, 2, 5, 8}), floats("v", {2, 2, 5, 6})}, {2, 4, 3, 6},
        [&](INetworkDefinition& network, const Inputs& in) {
          return network
              .addAttentionV2(*in.at("q"), *in.at("k"), *in.at("v"), AttentionNormalizationOp::kSOFTMAX,
                              causal ? CausalMaskKind::kUPPER_LEFT : CausalMaskKind::kNONE)
              ->getOutput(0);
        },
        node("Attention", {"q", "k", "v"}, {"y"}, {real_attribute("scale", 1), int_attribute("is_causal", causal)}));
  }
}

TEST_F(OnnxTwins, AttentionWithMasks) {
  Given truths{"mask", kTruths, {1, 1, 3, 5}};
  for (size_t i = 0; i < 15; ++i) truths.truths.push_back(i % 4 != 1);
  for (const Given& mask : {truths, floats("mask", {2, 4, 3, 5})}) {
    SCOPED_TRACE(mask.type);
    expect_same(
        {floats("q", {2, 4, 3, 8}), floats("k", {2, 4, 5, 8}), floats("v", {2, 4, 5, 6}), mask}, {2, 4, 3, 6},
        [&](INetworkDefinition& network, const Inputs& in) {
          IAttention* attention = network.addAttentionV2(*in.at("q"), *in.at("k"), *in.at("v"),
                                                         AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kNONE);
          EXPECT_TRUE(attention->setMask(*in.at("mask")));
          return attention->getOutput(0);
        },
        node("Attention", {"q", "k", "v", "mask"}, {"y"}, {real_attribute("scale", 1)}));
  }
}

TEST_F(OnnxTwins, RotaryEmbedding) {
  for (const bool interleaved : {false, true})
    for (const int32_t turned : {0, 4}) {
      SCOPED_TRACE(turned);
      const int64_t half = (turned ? turned : 8) / 2;
      const auto rotate = [&](INetworkDefinition& network, const Inputs& in) {
        IRotaryEmbeddingLayer* layer =
            network.addRotaryEmbedding(*in.at("x"), *in.at("cos"), *in.at("sin"), interleaved, turned);
        if (in.contains("positions")) layer->setInput(3, *in.at("positions"));
        return layer->getOutput(0);
      };
      const auto twin = [&](std::initializer_list<const char*> inputs) {
        return node("RotaryEmbedding", inputs, {"y"},
                    {int_attribute("interleaved", interleaved), int_attribute("rotary_embedding_dim", turned)});
      };
      expect_same({floats("x", {2, 3, 5, 8}), floats("cos", {2, 5, half}), floats("sin", {2, 5, half})}, {2, 3, 5, 8},
                  rotate, twin({"x", "cos", "sin"}));
      expect_same({floats("x", {2, 3, 5, 8}), floats("cos", {9, half}), floats("sin", {9, half}),
                   integers("positions", {2, 5}, {0, 8, 3, 2, 1, 7, 6, 5, 4, 0})},
                  {2, 3, 5, 8}, rotate, twin({"x", "cos", "sin", "positions"}));
    }
}

TEST_F(OnnxTwins, KVCacheUpdate) {
  expect_same(
      {floats("cache", {2, 3, 6, 4}), floats("update", {2, 3, 2, 4}), integers("places", {2}, {0, 4})}, {2, 3, 6, 4},
      [](INetworkDefinition& network, const Inputs& in) {
        return network.addKVCacheUpdate(*in.at("cache"), *in.at("update"), *in.at("places"), KVCacheMode::kLINEAR)
            ->getOutput(0);
      },
      node("TensorScatter", {"cache", "update", "places"}, {"y"}, {string_attribute("mode", "linear")}));
}

}  // namespace
}  // namespace nvinfer1
