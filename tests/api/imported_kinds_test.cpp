// SPDX-License-Identifier: Apache-2.0
// Layers of parsed networks are of the kinds that tools look for, and made again from their settings they compute the
// same.
#include "NvOnnxParser.h"
#include "api/layers_world.h"
#include "onnx/model_bytes.h"

namespace nvinfer1::layers {
namespace {

using namespace lathe::onnx;  // what writes the models

struct Parsed : Net {
  explicit Parsed(const std::string& model) { EXPECT_TRUE(parser->parse(model.data(), model.size())) << log.text(); }
  // What the network computes.
  std::string result() { return Net::result(*network->getLayer(network->getNbLayers() - 1)); }
  ILayer* find(LayerType type) const {
    for (int32_t i = 0; i < network->getNbLayers(); ++i)
      if (network->getLayer(i)->getType() == type) return network->getLayer(i);
    return nullptr;
  }
  std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, log)};
};

// One node that reads x[1, 4, 3, 2] and constants.
std::string one_node(std::string_view node_bytes, std::vector<std::string> constants, int type = 1) {
  return model(graph({{std::string(node_bytes)},
                      std::move(constants),
                      {value_info("x", 1, {1, 4, 3, 2})},
                      {value_info("y", type, {})}}));
}

struct Kind {
  const char* name;
  std::string model;
  LayerType type;
};

std::vector<Kind> kinds() {
  const auto floats = [](const char* name, std::vector<int64_t> dims, std::vector<float> values) {
    return raw_tensor<float>(name, 1, std::move(dims), std::move(values));
  };
  const auto ints = [](const char* name, std::vector<int64_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return raw_tensor<int64_t>(name, 7, {count}, std::move(values));
  };
  return {
      {"Softmax", one_node(node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1)}), {}), LayerType::kSOFTMAX},
      {"LayerNormalization",
       one_node(node("LayerNormalization", {"x", "s", "b"}, {"y"}, {int_attribute("axis", -1)}),
                {floats("s", {2}, {2, 3}), floats("b", {2}, {1, -1})}),
       LayerType::kNORMALIZATION},
      {"LayerNormalizationOfTwo",
       one_node(node("LayerNormalization", {"x", "s"}, {"y"}, {int_attribute("axis", 2)}),
                {floats("s", {3, 2}, {2, 3, 1, 1, 5, 6})}),
       LayerType::kNORMALIZATION},
      {"InstanceNormalization",
       one_node(node("InstanceNormalization", {"x", "s", "b"}, {"y"}),
                {floats("s", {4}, {2, 3, 4, 5}), floats("b", {4}, {1, -1, 0, 2})}),
       LayerType::kNORMALIZATION},
      {"GroupNormalization",
       one_node(node("GroupNormalization", {"x", "s", "b"}, {"y"}, {int_attribute("num_groups", 2)}),
                {floats("s", {4}, {2, 3, 4, 5}), floats("b", {4}, {1, -1, 0, 2})}),
       LayerType::kNORMALIZATION},
      {"LRN", one_node(node("LRN", {"x"}, {"y"}, {int_attribute("size", 3)}), {}), LayerType::kLRN},
      {"Concat", one_node(node("Concat", {"x", "x"}, {"y"}, {int_attribute("axis", -2)}), {}),
       LayerType::kCONCATENATION},
      {"Slice",
       one_node(node("Slice", {"x", "from", "to", "axes", "steps"}, {"y"}),
                {ints("from", {-1, 0}), ints("to", {-9, 2}), ints("axes", {1, -2}), ints("steps", {-2, 1})}),
       LayerType::kSLICE},
      {"TopK", one_node(node("TopK", {"x", "k"}, {"y", "i"}, {int_attribute("axis", 1)}), {ints("k", {2})}),
       LayerType::kTOPK},
      {"Unsqueeze", one_node(node("Unsqueeze", {"x", "axes"}, {"y"}), {ints("axes", {0})}), LayerType::kUNSQUEEZE},
      {"Squeeze", one_node(node("Squeeze", {"x", "axes"}, {"y"}), {ints("axes", {0})}), LayerType::kSQUEEZE},
      {"NonZero", one_node(node("NonZero", {"x"}, {"y"}), {}, 7), LayerType::kNON_ZERO},
      {"GatherND",
       one_node(node("GatherND", {"x", "at"}, {"y"}, {int_attribute("batch_dims", 1)}),
                {raw_tensor<int64_t>("at", 7, {1, 2}, {3, 1})}),
       LayerType::kGATHER},
      {"ScatterElements",
       one_node(node("ScatterElements", {"x", "at", "v"}, {"y"}, {int_attribute("axis", 1)}),
                {raw_tensor<int64_t>("at", 7, {1, 1, 1, 2}, {3, 1}), floats("v", {1, 1, 1, 2}, {50, 60})}),
       LayerType::kSCATTER},
      {"ConvTranspose",
       one_node(node("ConvTranspose", {"x", "w"}, {"y"}, {int_attribute("group", 2)}),
                {floats("w", {4, 1, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}),
       LayerType::kDECONVOLUTION},
  };
}

class ImportedKinds : public testing::TestWithParam<Kind> {};

// S27: instance normalizations, too.
TEST_P(ImportedKinds, KeepTheirMeaning) {
  Parsed n(GetParam().model);
  const ILayer* layer = n.find(GetParam().type);
  ASSERT_NE(layer, nullptr);
  const std::string before = n.result();
  EXPECT_EQ(before.substr(0, 5).find("LATHE"), std::string::npos) << before;
  for (int32_t i = 0; i < n.network->getNbLayers(); ++i)
    n.network->getLayer(i)->setName(("renamed " + std::to_string(i)).c_str());
  EXPECT_EQ(n.result(), before);
  EXPECT_TRUE(n.builds()) << n.log.text();
}

INSTANTIATE_TEST_SUITE_P(Kinds, ImportedKinds, testing::ValuesIn(kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ImportedSettings, AreThoseOfTheNodes) {
  Parsed n(kinds()[7].model);
  auto* slice = static_cast<ISliceLayer*>(n.find(LayerType::kSLICE));
  EXPECT_TRUE(same(slice->getStart(), Dims4(0, 3, 0, 0)));
  EXPECT_TRUE(same(slice->getSize(), Dims4(1, 2, 2, 2)));
  EXPECT_TRUE(same(slice->getStride(), Dims4(1, -2, 1, 1)));
  EXPECT_EQ(slice->getNbInputs(), 1);
  Parsed m(kinds()[0].model);
  EXPECT_EQ(static_cast<ISoftMaxLayer*>(m.find(LayerType::kSOFTMAX))->getAxes(), 2u);
  Parsed o(kinds()[1].model);
  auto* normalization = static_cast<INormalizationLayer*>(o.find(LayerType::kNORMALIZATION));
  EXPECT_EQ(normalization->getAxes(), 8u);
  EXPECT_FLOAT_EQ(normalization->getEpsilon(), 1e-5f);
}

}  // namespace
}  // namespace nvinfer1::layers
