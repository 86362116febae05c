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

std::string floats(const char* name, std::vector<int64_t> dims, std::vector<float> values) {
  return raw_tensor<float>(name, 1, std::move(dims), std::move(values));
}

std::string ints(const char* name, std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return raw_tensor<int64_t>(name, 7, {count}, std::move(values));
}

std::vector<Kind> kinds_of_nodes() {
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

std::vector<Kind> kinds_of_folded_inputs() {
  return {
      {"BatchNormalization",
       one_node(node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}),
                {floats("s", {4}, {2, 3, 4, 5}), floats("b", {4}, {1, -1, 0, 2}), floats("m", {4}, {0, 1, 2, 3}),
                 floats("v", {4}, {1, 4, 9, 16})}),
       LayerType::kSCALE},
      {"Flatten", one_node(node("Flatten", {"x"}, {"y"}, {int_attribute("axis", 2)}), {}), LayerType::kSHUFFLE},
      {"Reshape", one_node(node("Reshape", {"x", "to"}, {"y"}), {ints("to", {0, -1, 3})}), LayerType::kSHUFFLE},
      {"SqueezeOfAll", one_node(node("Squeeze", {"x"}, {"y"}), {}), LayerType::kSHUFFLE},
      {"AddOfRanks", one_node(node("Add", {"x", "b"}, {"y"}), {floats("b", {3, 2}, {1, 2, 3, 4, 5, 6})}),
       LayerType::kELEMENTWISE},
      {"MatMulOfRanks", one_node(node("MatMul", {"x", "w"}, {"y"}), {floats("w", {2, 2}, {1, 2, 3, 4})}),
       LayerType::kMATRIX_MULTIPLY},
      {"MatMulByAVector", one_node(node("MatMul", {"x", "w"}, {"y"}), {floats("w", {2}, {1, 2})}),
       LayerType::kMATRIX_MULTIPLY},
      {"ReduceOfAxes", one_node(node("ReduceMean", {"x", "axes"}, {"y"}), {ints("axes", {-1, 1})}), LayerType::kREDUCE},
      {"ReduceOfAll", one_node(node("ReduceMax", {"x"}, {"y"}), {}), LayerType::kREDUCE},
      {"Pad",
       one_node(node("Pad", {"x", "pads", "value"}, {"y"}),
                {ints("pads", {0, 0, 1, 0, 0, 0, 2, 3}), floats("value", {}, {7})}),
       LayerType::kSLICE},
      {"PadByReflection",
       one_node(node("Pad", {"x", "pads"}, {"y"}, {string_attribute("mode", "reflect")}),
                {ints("pads", {0, 2, 0, 0, 0, 1, 0, 0})}),
       LayerType::kSLICE},
      {"Expand", one_node(node("Expand", {"x", "to"}, {"y"}), {ints("to", {3, 1, 1, 1})}), LayerType::kSLICE},
      {"Tile", one_node(node("Tile", {"x", "by"}, {"y"}), {ints("by", {1, 2, 1, 3})}), LayerType::kSLICE},
  };
}

std::vector<Kind> kinds_of_several_nodes() {
  return {
      {"ResizeToSizes",
       one_node(node("Resize", {"x", "", "", "to"}, {"y"}, {string_attribute("mode", "linear")}),
                {ints("to", {1, 4, 5, 7})}),
       LayerType::kRESIZE},
      {"ResizeByScales",
       one_node(node("Resize", {"x", "", "by"}, {"y"},
                     {string_attribute("coordinate_transformation_mode", "pytorch_half_pixel"),
                      string_attribute("nearest_mode", "floor")}),
                {floats("by", {4}, {1, 1, 2, 3})}),
       LayerType::kRESIZE},
      {"OneHot",
       model(graph({{node("ArgMax", {"x"}, {"i"}), node("OneHot", {"i", "depth", "values"}, {"y"})},
                    {ints("depth", {3}), floats("values", {2}, {-1, 5})},
                    {value_info("x", 1, {1, 4, 3, 2})},
                    {value_info("y", 1, {})}})),
       LayerType::kONE_HOT},
      {"DequantizeByChannel",
       model(graph({{node("QuantizeLinear", {"x", "s", "z"}, {"q"}), node("DequantizeLinear", {"q", "s", "z"}, {"y"})},
                    {floats("s", {4}, {0.5, 0.25, 1, 2}), raw_tensor<int8_t>("z", 3, {4}, {0, 1, -1, 2})},
                    {value_info("x", 1, {1, 4, 3, 2})},
                    {value_info("y", 1, {})}})),
       LayerType::kDEQUANTIZE},
      {"QuantizeByChannel",
       model(graph({{node("QuantizeLinear", {"x", "s", "z"}, {"q"}), node("DequantizeLinear", {"q", "s", "z"}, {"y"})},
                    {floats("s", {4}, {0.5, 0.25, 1, 2}), raw_tensor<int8_t>("z", 3, {4}, {0, 1, -1, 2})},
                    {value_info("x", 1, {1, 4, 3, 2})},
                    {value_info("y", 1, {})}})),
       LayerType::kQUANTIZE},
      {"ConvolutionOfRows",
       model(graph({{node("Reshape", {"x", "to"}, {"r"}), node("Conv", {"r", "w"}, {"y"})},
                    {ints("to", {1, 4, 6}), floats("w", {1, 4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
                    {value_info("x", 1, {1, 4, 3, 2})},
                    {value_info("y", 1, {})}})),
       LayerType::kCONVOLUTION},
      {"PoolingOfRows",
       model(graph(
           {{node("Reshape", {"x", "to"}, {"r"}), node("MaxPool", {"r"}, {"y"}, {ints_attribute("kernel_shape", {2})})},
            {ints("to", {1, 4, 6})},
            {value_info("x", 1, {1, 4, 3, 2})},
            {value_info("y", 1, {})}})),
       LayerType::kPOOLING},
      {"ConstantOfShape",
       model(
           graph({{node("Shape", {"x"}, {"s"}), node("ConstantOfShape", {"s"}, {"c"}), node("Add", {"x", "c"}, {"y"})},
                  {},
                  {value_info("x", 1, {1, 4, 3, 2})},
                  {value_info("y", 1, {})}})),
       LayerType::kFILL},
      {"Gemm",
       model(graph({{node("Flatten", {"x"}, {"r"}, {int_attribute("axis", 2)}), node("Gemm", {"r", "w", "b"}, {"y"})},
                    {floats("w", {6, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), floats("b", {2}, {1, -1})},
                    {value_info("x", 1, {1, 4, 3, 2})},
                    {value_info("y", 1, {})}})),
       LayerType::kELEMENTWISE},
  };
}

std::vector<Kind> kinds() {
  std::vector<Kind> all = kinds_of_nodes();
  for (const auto& more : {kinds_of_folded_inputs(), kinds_of_several_nodes()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
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

const Kind& kind(std::string_view name) {
  static const std::vector<Kind> all = kinds();
  return *std::find_if(all.begin(), all.end(), [&](const Kind& k) { return k.name == name; });
}

template <class L>
L& layer_of(const Parsed& n, std::string_view name) {
  return *static_cast<L*>(n.find(kind(name).type));
}

TEST(ImportedSettings, SayWhatInputsOfTheNodesDo) {
  Parsed pad(kind("Pad").model);
  auto& padding = layer_of<ISliceLayer>(pad, "Pad");
  EXPECT_TRUE(same(padding.getStart(), Dims4(0, 0, -1, 0)));
  EXPECT_TRUE(same(padding.getSize(), Dims4(1, 4, 6, 5)));
  EXPECT_EQ(padding.getMode(), SampleMode::kFILL);
  EXPECT_NE(padding.getInput(4), nullptr);
  Parsed expand(kind("Expand").model);
  EXPECT_TRUE(same(layer_of<ISliceLayer>(expand, "Expand").getStride(), Dims4(0, 1, 1, 1)));
  Parsed tile(kind("Tile").model);
  EXPECT_EQ(layer_of<ISliceLayer>(tile, "Tile").getMode(), SampleMode::kWRAP);
  Parsed reduce(kind("ReduceOfAxes").model);
  EXPECT_EQ(layer_of<IReduceLayer>(reduce, "ReduceOfAxes").getReduceAxes(), 10u);
  EXPECT_EQ(layer_of<IReduceLayer>(reduce, "ReduceOfAxes").getNbInputs(), 1);
  Parsed flatten(kind("Flatten").model);
  EXPECT_TRUE(same(layer_of<IShuffleLayer>(flatten, "Flatten").getReshapeDimensions(), Dims2(4, 6)));
  Parsed resize(kind("ResizeByScales").model);
  float scales[4] = {};
  EXPECT_EQ(layer_of<IResizeLayer>(resize, "ResizeByScales").getScales(4, scales), 4);
  EXPECT_EQ(scales[3], 3);
  EXPECT_EQ(layer_of<IResizeLayer>(resize, "ResizeByScales").getSelectorForSinglePixel(), ResizeSelector::kUPPER);
  Parsed fill(kind("ConstantOfShape").model);
  EXPECT_EQ(layer_of<IFillLayer>(fill, "ConstantOfShape").getBeta(), 0);
  Parsed quantize(kind("DequantizeByChannel").model);
  EXPECT_EQ(layer_of<IDequantizeLayer>(quantize, "DequantizeByChannel").getAxis(), 1);
  EXPECT_EQ(layer_of<IDequantizeLayer>(quantize, "DequantizeByChannel").getInput(1)->getDimensions().nbDims, 1);
}

TEST(ImportedSettings, OfBatchNormalizationsAreOneFactorAndOneShift) {
  Parsed n(kind("BatchNormalization").model);
  auto& scale = layer_of<IScaleLayer>(n, "BatchNormalization");
  EXPECT_EQ(scale.getMode(), ScaleMode::kCHANNEL);
  EXPECT_EQ(scale.getChannelAxis(), 1);
  ASSERT_EQ(scale.getScale().count, 4);
  ASSERT_EQ(scale.getShift().count, 4);
  EXPECT_EQ(scale.getPower().count, 0);
  EXPECT_NEAR(static_cast<const float*>(scale.getScale().values)[1], 1.5F, 1e-5F);
  EXPECT_NEAR(static_cast<const float*>(scale.getShift().values)[1], -2.5F, 1e-5F);
  scale.setShift({DataType::kFLOAT, nullptr, 0});  // changed as an application would
  EXPECT_TRUE(n.builds()) << n.log.text();
}

// Dimensions that are open are left out of the bounds.
TEST(ImportedSettings, OfOpenDimensions) {
  const auto bounds = [](const char* name, std::vector<int64_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return raw_tensor<int64_t>(name, 7, {count}, std::move(values));
  };
  Parsed n(model(graph({{node("Slice", {"x", "from", "to", "axes"}, {"s"}), node("Flatten", {"s"}, {"y"})},
                        {bounds("from", {1}), bounds("to", {3}), bounds("axes", {1})},
                        {value_info("x", 1, {-1, 4, 3, 2})},
                        {value_info("y", 1, {})}})));
  auto* slice = static_cast<ISliceLayer*>(n.find(LayerType::kSLICE));
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->getAxes().nbDims, 1);
  EXPECT_EQ(slice->getAxes().d[0], 1);
  EXPECT_EQ(slice->getStart().d[0], 1);
  EXPECT_EQ(slice->getSize().d[0], 2);
  auto* flatten = static_cast<IShuffleLayer*>(n.find(LayerType::kSHUFFLE));
  ASSERT_NE(flatten, nullptr);
  EXPECT_TRUE(same(flatten->getReshapeDimensions(), Dims2(0, 12)));
}

}  // namespace
}  // namespace nvinfer1::layers
