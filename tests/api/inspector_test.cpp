// SPDX-License-Identifier: Apache-2.0
// What engine inspectors tell, in the words that tools for TensorRT know.
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

using Json = nlohmann::json;

class Inspector : public EngineTest {
 protected:
  void load(ProfilingVerbosity verbosity) {
    config->setProfilingVerbosity(verbosity);
    engine = EngineTest::load(*build());
    inspector.reset(engine->createEngineInspector());
    ASSERT_NE(inspector, nullptr);
  }
  Json json() const { return Json::parse(inspector->getEngineInformation(LayerInformationFormat::kJSON)); }
  std::string lines() const { return inspector->getEngineInformation(LayerInformationFormat::kONELINE); }

  std::unique_ptr<IEngineInspector> inspector;
};

TEST_F(Inspector, DetailsHaveTheKeysOfTensorRT) {
  load(ProfilingVerbosity::kDETAILED);
  const Json all = json();
  ASSERT_EQ(all["Bindings"], (Json{"x", "y"}));
  ASSERT_EQ(all["Layers"].size(), static_cast<size_t>(engine->getNbLayers()));
  std::set<std::string> tensors;
  for (const Json& layer : all["Layers"]) {
    for (const char* key : {"Name", "LayerType", "TacticName", "TacticValue", "Metadata"})
      EXPECT_TRUE(layer[key].is_string()) << key << layer;
    EXPECT_EQ(layer["StreamId"], 0);
    EXPECT_EQ(layer["Depth"], 0);
    EXPECT_TRUE(std::regex_match(layer["TacticValue"].get<std::string>(), std::regex("0x[0-9a-f]{16}"))) << layer;
    EXPECT_EQ(layer["TacticValue"] == "0x0000000000000000", layer["TacticName"] == "") << layer;
    for (const char* list : {"Inputs", "Outputs"})
      for (const Json& tensor : layer[list]) {
        tensors.insert(tensor["Name"].get<std::string>());
        EXPECT_EQ(tensor["Format/Datatype"], "Float");
        EXPECT_EQ(tensor["Location"], on_gpu() ? "Device" : "Host");
        EXPECT_TRUE(tensor["Dimensions"].is_array());
      }
  }
  EXPECT_TRUE(tensors.contains("x") && tensors.contains("y")) << all;
  EXPECT_EQ(all["Layers"][0], Json::parse(inspector->getLayerInformation(0, LayerInformationFormat::kJSON)));
}

TEST_F(Inspector, OneLineALayer) {
  load(ProfilingVerbosity::kDETAILED);
  const std::string text = lines();
  const std::regex tensor(std::string(R"(\{ Name: x, Location: )") + (on_gpu() ? "Device" : "Host") +
                          R"(, Dimensions: \[-1,3\], Format/Datatype: Float \})");
  EXPECT_TRUE(std::regex_search(text, tensor)) << text;
  const std::regex layer(
      "\nName: [^\n]*, LayerType: [^\n]*, Inputs: \\[ \\{[^\n]*\\}\\], Outputs: \\[ \\{[^\n]*\\}\\], "
      "TacticName: [^\n]*, TacticValue: 0x[0-9a-f]{16}, StreamId: 0, Metadata: [^\n]*\n");
  EXPECT_TRUE(std::regex_search(text, layer)) << text;
  EXPECT_TRUE(text.starts_with("Layers:\n")) << text;
  EXPECT_TRUE(text.ends_with("\nBindings:\nx\ny\n")) << text;
  const std::string first = inspector->getLayerInformation(0, LayerInformationFormat::kONELINE);
  EXPECT_NE(text.find(first), std::string::npos) << first;
}

TEST_F(Inspector, AContextFillsInTheDimensions) {
  load(ProfilingVerbosity::kDETAILED);
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  ASSERT_TRUE(inspector->setExecutionContext(context.get()));
  EXPECT_EQ(inspector->getExecutionContext(), context.get());
  EXPECT_NE(lines().find("Dimensions: [-1,3]"), std::string::npos) << lines();
  ASSERT_TRUE(context->setInputShape("x", Dims2(5, 3)));
  ASSERT_EQ(context->inferShapes(0, nullptr), 0);
  EXPECT_NE(lines().find("Dimensions: [5,3]"), std::string::npos) << lines();
  EXPECT_EQ(lines().find("-1"), std::string::npos) << lines();
}

TEST_F(Inspector, NamesOnlyAndNothing) {
  load(ProfilingVerbosity::kLAYER_NAMES_ONLY);
  const Json all = json();
  for (const Json& layer : all["Layers"]) EXPECT_TRUE(layer.is_string()) << layer;
  EXPECT_EQ(all["Layers"].size(), static_cast<size_t>(engine->getNbLayers()));
  EXPECT_EQ(lines().find("TacticName"), std::string::npos) << lines();
  load(ProfilingVerbosity::kNONE);
  EXPECT_TRUE(json()["Layers"].empty());
  EXPECT_EQ(json()["Bindings"].size(), 2u);
  EXPECT_STREQ(inspector->getLayerInformation(0, LayerInformationFormat::kJSON), "");
}

// The timing cache names tactics by the same numbers.
TEST_F(Inspector, TacticValuesAreThoseOfTheTimingCache) {
  const std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
  ASSERT_TRUE(config->setTimingCache(*cache, false));
  lathe::setBuildBudget(*config, 5);
  load(ProfilingVerbosity::kDETAILED);
  std::vector<TimingCacheKey> keys(static_cast<size_t>(cache->queryKeys(nullptr, 0)));
  ASSERT_FALSE(keys.empty());
  ASSERT_EQ(cache->queryKeys(keys.data(), static_cast<int64_t>(keys.size())), static_cast<int64_t>(keys.size()));
  std::set<std::string> values;
  const Json all = json();
  for (const Json& layer : all["Layers"]) values.insert(layer["TacticValue"].get<std::string>());
  for (const TimingCacheKey& key : keys) {
    char text[19];
    std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(cache->query(key).tacticHash));
    EXPECT_TRUE(values.contains(text)) << text;
  }
}

TEST_F(Inspector, FormatsAreDescribedInTheWordsOfTensorRT) {
  load(ProfilingVerbosity::kNONE);
  EXPECT_STREQ(engine->getTensorFormatDesc("x"), "Row major linear FP32 format");
  EXPECT_STREQ(engine->getTensorFormatDesc("y", 0), "Row major linear FP32 format");
}

}  // namespace
}  // namespace nvinfer1
