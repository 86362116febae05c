// SPDX-License-Identifier: Apache-2.0
// Plans with plugins in a process that never saw the builder, with the library that has no builder at all.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "NvOnnxParser.h"
#include "onnx/model_bytes.h"
#include "plugin_fixture.h"

namespace nvinfer1 {
namespace {

class PluginProcess : public PluginV3 {
 protected:
  void SetUp() override {
    PluginV3::SetUp();
    std::filesystem::create_directories(folder_);
    ScalePlugin plugin("Scale", 2.5F, Lie::none);
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(2, 3));
    IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);
    layer->setName("the layer");
    layer->getOutput(0)->setName("y");
    network->markOutput(*layer->getOutput(0));
    ASSERT_TRUE(build()) << logger.last();
    write("plan", plan->data(), plan->size());
    const float given[] = {1, 2, 3, 4, 5, 6};
    write("x", given, sizeof given);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, const void* data, size_t size) {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  // Exit status; what it says is in said_.
  int run_plan(const std::string& library) {
    const std::string folder = folder_.string();
    const std::string command = PLAN_RUNNER " " + folder + "/plan " + folder + " " + folder + " " + library + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    char part[256];
    said_.clear();
    while (std::fgets(part, sizeof part, pipe)) said_ += part;
    return pclose(pipe);
  }
  std::vector<float> answer() {
    std::ifstream file(folder_ / "y", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<float> y(bytes.size() / sizeof(float));
    std::memcpy(y.data(), bytes.data(), y.size() * sizeof(float));
    return y;
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("plugin_process_" + std::to_string(getpid()));
  std::string said_;
};

// S30.
TEST_F(PluginProcess, RunsThePlanWithTheCreator) {
  ASSERT_EQ(run_plan(SCALE_LIBRARY), 0) << said_;
  EXPECT_EQ(answer(), (std::vector<float>{2.5F, 5, 7.5F, 10, 12.5F, 15}));
}

// S16, S30, S33: with the plugin in the plan.
TEST_F(PluginProcess, TakesTheLibraryFromThePlan) {
  const char* const libraries[] = {SCALE_LIBRARY};
  config->setPluginsToSerialize(libraries, 1);
  const size_t without = plan->size();
  ASSERT_TRUE(build()) << logger.last();
  EXPECT_EQ(plan->size(), without) << "of no version-compatible plan";
  config->setFlag(BuilderFlag::kVERSION_COMPATIBLE);
  config->setFlag(BuilderFlag::kEXCLUDE_LEAN_RUNTIME);
  ASSERT_TRUE(build()) << logger.last();
  EXPECT_GT(plan->size(), without);
  write("plan", plan->data(), plan->size());
  EXPECT_NE(run_plan(""), 0);
  for (const char* part : {"LATHE-4006", "'plugin_libraries'", "setEngineHostCodeAllowed(true)"})
    EXPECT_NE(said_.find(part), std::string::npos) << said_;
  ASSERT_EQ(run_plan("--allow"), 0) << said_;
  EXPECT_EQ(answer(), (std::vector<float>{2.5F, 5, 7.5F, 10, 12.5F, 15}));

  // Twice in one process, beside a creator that is there already.
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  ASSERT_TRUE(runtime->getPluginRegistry().loadLibrary(SCALE_LIBRARY));
  runtime->setEngineHostCodeAllowed(true);
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    EXPECT_NE(engine, nullptr) << logger.last();
  }
  const char* const none[] = {"/no/such/plugin.so"};
  config->setPluginsToSerialize(none, 1);
  EXPECT_FALSE(build());
  EXPECT_NE(logger.last().find("/no/such/plugin.so"), std::string::npos) << logger.last();
}

// S31, S33: what a model needs is what the plan is to hold.
TEST_F(PluginProcess, TheParserNamesTheLibrary) {
  namespace onnx = lathe::onnx;
  const std::string bytes = onnx::model(
      onnx::graph({{onnx::node("ScaleOfModels", {"x"}, {"y"}, {onnx::string_attribute("plugin_namespace", "test")})},
                   {},
                   {onnx::value_info("x", 1, {2, 3})},
                   {onnx::value_info("y", 1, {2, 3})}}));
  const std::unique_ptr<IBuilder> own(createInferBuilder(logger));
  ASSERT_TRUE(own->getPluginRegistry().loadLibrary(SCALE_LIBRARY));
  const std::unique_ptr<INetworkDefinition> parsed(own->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*parsed, logger));
  int64_t count = -1;
  EXPECT_EQ(parser->getUsedVCPluginLibraries(count), nullptr);
  EXPECT_EQ(count, 0);
  ASSERT_TRUE(parser->parse(bytes.data(), bytes.size())) << logger.last();
  const char* const* libraries = parser->getUsedVCPluginLibraries(count);
  ASSERT_EQ(count, 1);
  EXPECT_STREQ(libraries[0], SCALE_LIBRARY);
  config->setPluginsToSerialize(libraries, static_cast<int32_t>(count));
  EXPECT_EQ(config->getNbPluginsToSerialize(), 1);
}

// S30.
TEST_F(PluginProcess, SaysWhichCreatorItMisses) {
  EXPECT_NE(run_plan(""), 0);
  for (const char* part : {"plugin 'Scale', version 1, of layer 'the layer'", "namespace 'test'", "loadLibrary()"})
    EXPECT_NE(said_.find(part), std::string::npos) << said_;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "y"));
}

}  // namespace
}  // namespace nvinfer1
