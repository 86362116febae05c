// SPDX-License-Identifier: Apache-2.0
// Lathe's own additions, used as a program would.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "NvOnnxParser.h"
#include "lathe.h"
#include "source_dir.h"

namespace {

const std::string kDigits = lathe::source_path("/examples/digits/digits.onnx");

struct Silent : nvinfer1::ILogger {
  void log(Severity, const char*) noexcept override {}
};

std::string text_of(nvinfer1::IHostMemory* memory) {
  const std::unique_ptr<nvinfer1::IHostMemory> owned(memory);
  return owned ? std::string(static_cast<const char*>(owned->data()), owned->size()) : std::string();
}

TEST(Lathe, DoctorAndSupport) {
  const std::string doctor = text_of(lathe::doctorJson());
  for (const char* part : {"\"isa\"", "\"name\": \"cpu\"", "\"target\": \"cpu-", "\"targets\": [\n    \"cpu-"})
    EXPECT_NE(doctor.find(part), std::string::npos) << doctor;
  EXPECT_EQ(doctor.find("\"null\""), std::string::npos) << "no hardware";
  EXPECT_NE(doctor.find("\"name\": \"graph\",\n      \"ok\": true"), std::string::npos) << doctor;
  EXPECT_NE(doctor.find("\"name\": \"CUDA driver\""), std::string::npos) << doctor;
  EXPECT_NE(doctor.find("\"name\": \"NVRTC\""), std::string::npos) << doctor;
  const std::string support = text_of(lathe::supportJson(kDigits.c_str()));
  EXPECT_NE(support.find("\"supported\": true"), std::string::npos) << lathe::lastError() << support;
  EXPECT_EQ(lathe::supportJson("/nowhere/model.onnx"), nullptr);
  EXPECT_NE(std::string(lathe::lastError()).find("LATHE-1001"), std::string::npos) << lathe::lastError();
  EXPECT_EQ(lathe::supportJson(nullptr), nullptr);
}

TEST(Lathe, Settings) {
  Silent logger;
  std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
  EXPECT_LT(lathe::getBuildBudget(*config), 0);
  EXPECT_TRUE(lathe::setBuildBudget(*config, 1.5));
  EXPECT_EQ(lathe::getBuildBudget(*config), 1.5);
  const std::string untouched = lathe::getTarget(*config);
  EXPECT_FALSE(lathe::setTarget(*config, "cpu-z80"));
  EXPECT_TRUE(lathe::setTarget(*config, "cpu-x86_64-avx2"));
  EXPECT_STREQ(lathe::getTarget(*config), "cpu-x86_64-avx2");
  config->reset();
  EXPECT_STREQ(lathe::getTarget(*config), untouched.c_str());
  EXPECT_FALSE(lathe::setCpuThreads(*config, -1));
  EXPECT_TRUE(lathe::setCpuThreads(*config, 2));
  for (const char* program : {"/usr/libexec/lathe/lathe-compiler", "", static_cast<const char*>(nullptr)})
    EXPECT_TRUE(lathe::setCompiler(*config, program));
  EXPECT_TRUE(lathe::setCompilerLimits(*config, 0.5, 512));
  for (const double seconds : {0.0, -1.0, std::nan("")}) EXPECT_FALSE(lathe::setCompilerLimits(*config, seconds, 512));
  for (const int64_t mebibytes : {int64_t{0}, int64_t{-1}, INT64_MAX})
    EXPECT_FALSE(lathe::setCompilerLimits(*config, 1, mebibytes));
  EXPECT_EQ(lathe::buildReportJson(*builder), nullptr);
}

TEST(Lathe, FilesAreSavedWholeOrNotAtAll) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "saved_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder / "plan", old = "old", text = "new content";
  const auto content = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ASSERT_TRUE(lathe::saveFile(old.data(), old.size(), path.c_str()));
  EXPECT_EQ(content(), old);
  ASSERT_TRUE(lathe::saveFile(text.data(), text.size(), path.c_str()));
  EXPECT_EQ(content(), text);
  ASSERT_TRUE(lathe::saveFile(nullptr, 0, path.c_str()));
  EXPECT_EQ(content(), "");
  const auto entries = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  EXPECT_EQ(entries(), 1);
  EXPECT_FALSE(lathe::saveFile(old.data(), old.size(), folder.c_str()));  // a folder
  EXPECT_NE(std::string(lathe::lastError()).find(folder.string()), std::string::npos) << lathe::lastError();
  EXPECT_EQ(entries(), 1);
  EXPECT_FALSE(lathe::saveFile(old.data(), old.size(), (folder / "none/plan").c_str()));
  EXPECT_FALSE(lathe::saveFile(nullptr, 3, path.c_str()));
  EXPECT_FALSE(lathe::saveFile(old.data(), old.size(), nullptr));
  EXPECT_NE(std::string(lathe::lastError()).find("the path is null"), std::string::npos) << lathe::lastError();
  std::filesystem::remove_all(folder);
}

struct ParsedDigits {
  Silent logger;
  std::unique_ptr<nvinfer1::IBuilder> builder{nvinfer1::createInferBuilder(logger)};
  std::unique_ptr<nvinfer1::INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, logger)};
  std::unique_ptr<nvinfer1::IBuilderConfig> config{builder->createBuilderConfig()};
  bool parsed = parser->parseFromFile(kDigits.c_str(), 2) && lathe::setBuildBudget(*config, 0);

  bool builds() {
    return std::unique_ptr<nvinfer1::IHostMemory>(builder->buildSerializedNetwork(*network, *config)) != nullptr;
  }
};

// The plan that a build gives in memory, to the byte; also where one file is for several targets.
TEST(Lathe, EnginesAreBuiltIntoFiles) {
  ParsedDigits digits;
  ASSERT_TRUE(digits.parsed);
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "built_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder / "digits.engine";
  const auto builds = [&](const char* to) {
    return lathe::buildEngineFile(*digits.builder, *digits.network, *digits.config, to);
  };
  const auto entries = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  const auto expect_the_same = [&] {
    const std::unique_ptr<nvinfer1::IHostMemory> plan(
        digits.builder->buildSerializedNetwork(*digits.network, *digits.config));
    ASSERT_TRUE(plan);
    ASSERT_TRUE(builds(path.c_str())) << lathe::lastError();
    std::ifstream file(path, std::ios::binary);
    const std::string content(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(content, std::string_view(static_cast<const char*>(plan->data()), plan->size()));
    EXPECT_EQ(entries(), 1);
  };
  expect_the_same();
  ASSERT_TRUE(lathe::setTargets(*digits.config, "cpu-x86_64-avx2,cpu-x86_64-avx512"));
  expect_the_same();
  EXPECT_FALSE(builds((folder / "none/digits.engine").c_str()));
  EXPECT_NE(std::string(lathe::lastError()).find("none/digits.engine"), std::string::npos) << lathe::lastError();
  EXPECT_FALSE(builds(nullptr));
  EXPECT_FALSE(builds(""));
  EXPECT_FALSE(builds(folder.c_str())) << "a folder";
  EXPECT_EQ(entries(), 1);
  std::filesystem::remove_all(folder);
}

// The same number in the report of the build and in the plan. No kernel rounds to 8-bit floats; the shape of x needs
// none. A softmax shares no launch with it.
TEST(Lathe, TellsTheShareOfPlainEvaluations) {
  Silent logger;
  const auto share_of = [&](bool softmax, bool rounded) {
    const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    nvinfer1::ITensor* x = network->addInput("x", nvinfer1::DataType::kFLOAT, nvinfer1::Dims2(-1, 3));
    if (softmax) network->markOutput(*network->addSoftMax(*x)->getOutput(0));
    if (rounded) network->markOutput(*network->addCast(*x, nvinfer1::DataType::kFP8)->getOutput(0));
    network->markOutput(*network->addShape(*x)->getOutput(0));
    nvinfer1::IOptimizationProfile* profile = builder->createOptimizationProfile();
    for (int32_t i = 0; i < 3; ++i)
      profile->setDimensions("x", static_cast<nvinfer1::OptProfileSelector>(i), nvinfer1::Dims2(4 + i, 3));
    config->addOptimizationProfile(profile);
    lathe::setBuildBudget(*config, 0);
    const std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << lathe::lastError();
    const auto report = nlohmann::json::parse(text_of(lathe::buildReportJson(*builder)));
    const auto shown = nlohmann::json::parse(text_of(lathe::planJson(plan->data(), plan->size())));
    const double share = report["evaluated_share"];
    EXPECT_NEAR(share, std::stod(shown["metadata"]["evaluated_share"].get<std::string>()), 1e-4);
    return share;
  };
  EXPECT_EQ(share_of(true, false), 0);
  EXPECT_GT(share_of(true, true), 0);
  EXPECT_GT(share_of(false, true), share_of(true, true));
  EXPECT_LE(share_of(false, true), 1);
}

// Work, operands and memory of each step, with a batch that is open.
TEST(Lathe, TellsTheWorkOfSteps) {
  ParsedDigits digits;
  ASSERT_TRUE(digits.parsed);
  nvinfer1::IOptimizationProfile* profile = digits.builder->createOptimizationProfile();
  for (int32_t i = 0; i < 3; ++i)
    profile->setDimensions("image", static_cast<nvinfer1::OptProfileSelector>(i), nvinfer1::Dims4(2 + i, 1, 8, 8));
  digits.config->addOptimizationProfile(profile);
  const auto described = [&](nvinfer1::ProfilingVerbosity verbosity) {
    digits.config->setProfilingVerbosity(verbosity);
    const std::unique_ptr<nvinfer1::IHostMemory> plan(
        digits.builder->buildSerializedNetwork(*digits.network, *digits.config));
    return nlohmann::json::parse(text_of(lathe::planJson(plan->data(), plan->size())));
  };
  EXPECT_FALSE(described(nvinfer1::ProfilingVerbosity::kLAYER_NAMES_ONLY)["metadata"].contains("lathe.costs"));
  const nlohmann::json plan = described(nvinfer1::ProfilingVerbosity::kDETAILED);
  const auto costs = nlohmann::json::parse(plan["metadata"]["lathe.costs"].get<std::string>());
  const auto report = nlohmann::json::parse(text_of(lathe::buildReportJson(*digits.builder)));
  ASSERT_EQ(costs["steps"].size(), plan["steps"].size());
  ASSERT_EQ(costs["steps"].size(), report["layers"].size());
  EXPECT_GT(costs["device"]["memory_bytes_per_us"], 0);
  EXPECT_GE(costs["device"]["operations_per_us"]["i8"], costs["device"]["operations_per_us"]["f32"]);
  double operations = 0;
  for (size_t i = 0; i < costs["steps"].size(); ++i) {
    const auto& layer = report["layers"][i];
    EXPECT_EQ(costs["steps"][i][0], layer["predicted_milliseconds"]);
    EXPECT_EQ(costs["steps"][i][1], layer["operations"]);
    EXPECT_EQ(costs["steps"][i][2], layer["bytes"]);
    EXPECT_GT(layer["predicted_milliseconds"], 0);
    operations += layer["operations"].get<double>();
    for (const auto& id : plan["steps"][i]["outputs"]) {
      const auto& tensor = plan["tensors"][id.get<size_t>()];
      EXPECT_EQ(tensor["dims"][0], 3) << tensor;
      if (tensor["storage"] != "arena") continue;
      const auto& buffer = plan["buffers"][tensor["index"].get<size_t>()];
      EXPECT_LE(buffer["first"], i);
      EXPECT_GE(buffer["last"], i);
    }
  }
  EXPECT_GT(operations, 3 * 2.0 * (16 * 64 * 9 + 2 * 16 * 64 * 16 * 9)) << "the first three convolutions of 3 images";
}

TEST(Lathe, PassesCanBeDumpedAndSkipped) {
  ParsedDigits digits;
  ASSERT_TRUE(digits.parsed);
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "lathe_passes" / "inner";
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  };
  ASSERT_TRUE(lathe::setPassDump(*digits.config, folder.c_str()));
  ASSERT_TRUE(digits.builds()) << lathe::lastError();
  const std::set<std::string> all = files();
  ASSERT_GT(all.size(), 1u);
  EXPECT_EQ(*all.begin(), "000_before.graph");
  const std::string changing = all.rbegin()->substr(4, all.rbegin()->size() - 4 - std::string(".graph").size());
  EXPECT_NE(text_of(lathe::buildReportJson(*digits.builder)).find('"' + changing + '"'), std::string::npos);

  ASSERT_TRUE(lathe::setPassSkipped(*digits.config, changing.c_str(), true)) << lathe::lastError();
  ASSERT_TRUE(digits.builds()) << lathe::lastError();
  for (const std::string& name : files()) EXPECT_EQ(name.find(changing), std::string::npos) << name;
  EXPECT_FALSE(lathe::setPassSkipped(*digits.config, "fold_everything", true));
  EXPECT_NE(std::string(lathe::lastError()).find("fold_constants, "), std::string::npos) << lathe::lastError();
  EXPECT_FALSE(lathe::setPassSkipped(*digits.config, nullptr, true));

  ASSERT_TRUE(lathe::setPassSkipped(*digits.config, changing.c_str(), false));
  ASSERT_TRUE(digits.builds()) << lathe::lastError();
  EXPECT_EQ(files(), all);

  ASSERT_TRUE(lathe::setPassDump(*digits.config, (folder / "000_before.graph").c_str()));
  EXPECT_FALSE(digits.builds());
  EXPECT_NE(std::string(lathe::lastError()).find("LATHE-1002"), std::string::npos) << lathe::lastError();
  ASSERT_TRUE(lathe::setPassDump(*digits.config, nullptr));
  EXPECT_TRUE(digits.builds()) << lathe::lastError();
  std::filesystem::remove_all(folder.parent_path());
}

TEST(Lathe, ParsedNetworkCanBeWalkedAndEvaluated) {
  Silent logger;
  std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  ASSERT_TRUE(parser->parseFromFile(kDigits.c_str(), 2)) << parser->getError(0)->desc();
  builder.reset();
  parser.reset();
  ASSERT_EQ(network->getNbInputs(), 1);
  ASSERT_GE(network->getNbOutputs(), 1);
  EXPECT_GT(network->getNbLayers(), 3);
  for (int32_t i = 0; i < network->getNbLayers(); ++i) {
    const nvinfer1::ILayer* layer = network->getLayer(i);
    ASSERT_NE(layer, nullptr);
    EXPECT_STRNE(layer->getName(), "");
    EXPECT_NE(layer->getOutput(0), nullptr);
  }
  EXPECT_NE(text_of(lathe::networkText(*network)), "");

  // Layers of a parsed network are of the class that their type promises, and can be changed.
  const auto* convolution = static_cast<nvinfer1::IConvolutionLayer*>(nullptr);
  nvinfer1::IActivationLayer* activation = nullptr;
  for (int32_t i = 0; i < network->getNbLayers(); ++i) {
    nvinfer1::ILayer* layer = network->getLayer(i);
    if (layer->getType() == nvinfer1::LayerType::kCONVOLUTION)
      convolution = static_cast<nvinfer1::IConvolutionLayer*>(layer);
    if (layer->getType() == nvinfer1::LayerType::kACTIVATION && !activation)
      activation = static_cast<nvinfer1::IActivationLayer*>(layer);
  }
  ASSERT_NE(convolution, nullptr);
  ASSERT_NE(activation, nullptr);
  EXPECT_EQ(convolution->getKernelSizeNd().nbDims, 2);
  EXPECT_EQ(convolution->getStrideNd().d[0], 1);
  EXPECT_GT(convolution->getNbOutputMaps(), 0);
  EXPECT_EQ(activation->getActivationType(), nvinfer1::ActivationType::kRELU);
  activation->setActivationType(nvinfer1::ActivationType::kTANH);
  EXPECT_EQ(activation->getOutput(0)->getType(), nvinfer1::DataType::kFLOAT);
  EXPECT_NE(text_of(lathe::networkText(*network)).find("op=tanh"), std::string::npos);

  nvinfer1::Dims dims = network->getInput(0)->getDimensions();
  int64_t volume = 1;
  for (int32_t i = 0; i < dims.nbDims; ++i) volume *= dims.d[i] = dims.d[i] < 0 ? 1 : dims.d[i];
  const std::vector<float> pixels(static_cast<size_t>(volume), 0.25f);
  const lathe::NamedTensor input{network->getInput(0)->getName(), nvinfer1::DataType::kFLOAT, dims, pixels.data()};
  const std::unique_ptr<lathe::ITensorList> outputs(lathe::evaluate(kDigits.c_str(), &input, 1));
  ASSERT_NE(outputs, nullptr) << lathe::lastError();
  ASSERT_EQ(outputs->size(), network->getNbOutputs());
  EXPECT_STREQ(outputs->get(0)->name, network->getOutput(0)->getName());
  EXPECT_EQ(outputs->get(1), nullptr);
  const std::unique_ptr<lathe::ITensorList> all(lathe::evaluate(kDigits.c_str(), &input, 1, true));
  EXPECT_GT(all->size(), outputs->size());
  EXPECT_EQ(lathe::evaluate(kDigits.c_str(), nullptr, 0), nullptr);
  EXPECT_NE(std::string(lathe::lastError()).find("LATHE-5001"), std::string::npos) << lathe::lastError();
}

TEST(Lathe, ParserErrorsAreListed) {
  Silent logger;
  std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  EXPECT_FALSE(parser->parse("not a model", 11));
  ASSERT_EQ(parser->getNbErrors(), 1);
  EXPECT_EQ(parser->getError(0)->code(), nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED);
  EXPECT_EQ(parser->getError(0)->node(), -1);
  EXPECT_EQ(parser->getError(1), nullptr);
  parser->clearErrors();
  EXPECT_EQ(parser->getNbErrors(), 0);
  EXPECT_TRUE(parser->supportsOperator("Conv"));
  EXPECT_TRUE(parser->supportsOperator("EfficientNMS_TRT")) << "a standard plugin";
  EXPECT_FALSE(parser->supportsOperator("NoSuchOperator"));
  EXPECT_TRUE(parser->getFlag(nvonnxparser::OnnxParserFlag::kNATIVE_INSTANCENORM));  // S28
}

}  // namespace
