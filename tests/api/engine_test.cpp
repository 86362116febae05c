// SPDX-License-Identifier: Apache-2.0
// From network to plan to results, through the public interface only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "source_dir.h"

namespace nvinfer1 {
namespace {

const std::string kDigits = lathe::source_path("/examples/digits/digits.onnx");

struct Growing : IOutputAllocator {
  ~Growing() { std::free(memory); }
  void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t alignment, cudaStream_t) override {
    std::free(memory);
    return memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  }
  void notifyShape(const char*, const Dims& dims) noexcept override { shape = dims; }
  void* memory = nullptr;
  Dims shape{};
};

struct Times : IProfiler {
  void reportLayerTime(const char* name, float) noexcept override { layers.emplace_back(name); }
  std::vector<std::string> layers;
};

struct Monitor : IProgressMonitor {
  void phaseStart(const char*, const char*, int32_t) noexcept override { ++open; }
  bool stepComplete(const char*, int32_t) noexcept override { return ++steps <= limit; }
  void phaseFinish(const char*) noexcept override { --open; }
  int open = 0, steps = 0, limit = INT32_MAX;
};

TEST_F(EngineTest, BuildLoadRun) {
  const auto plan = build();
  ASSERT_NE(plan, nullptr);
  builder.reset();
  network.reset();
  config.reset();
  const auto engine = load(*plan);
  ASSERT_NE(engine, nullptr);
  ASSERT_EQ(engine->getNbIOTensors(), 2);
  EXPECT_STREQ(engine->getIOTensorName(0), "x");
  EXPECT_STREQ(engine->getIOTensorName(1), "y");
  EXPECT_EQ(engine->getIOTensorName(2), nullptr);
  EXPECT_EQ(engine->getTensorShape("x").d[0], -1);
  EXPECT_EQ(engine->getTensorShape("x").d[1], 3);
  EXPECT_EQ(engine->getTensorIOMode("x"), TensorIOMode::kINPUT);
  EXPECT_EQ(engine->getTensorIOMode("y"), TensorIOMode::kOUTPUT);
  EXPECT_EQ(engine->getNbOptimizationProfiles(), 1);
  EXPECT_EQ(engine->getProfileShape("x", 0, OptProfileSelector::kMAX).d[0], 8);
  EXPECT_EQ(engine->getProfileShape("x", 0, OptProfileSelector::kOPT).d[0], 4);

  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  ASSERT_NE(context, nullptr);
  EXPECT_FALSE(context->allInputDimensionsSpecified());
  const char* missing = nullptr;
  EXPECT_EQ(context->inferShapes(1, &missing), 1);
  EXPECT_STREQ(missing, "x");
  EXPECT_FALSE(context->setInputShape("x", Dims2(9, 3)));
  EXPECT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  EXPECT_EQ(context->inferShapes(0, nullptr), 0);
  EXPECT_EQ(context->getTensorShape("y").d[0], 2);
  EXPECT_EQ(context->getTensorStrides("y").d[0], 2);
  EXPECT_EQ(context->getMaxOutputSize("y"), 16);
  const float x[] = {1, 2, 3, -4, 5, 6};
  float y[4] = {};
  EXPECT_TRUE(context->setInputTensorAddress("x", x));
  EXPECT_TRUE(context->setTensorAddress("y", y));
  EXPECT_FALSE(context->setOutputTensorAddress("x", y));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.text.back();
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{4, 0, 2, 1}));

  std::fill(y, y + 4, 0.0f);
  void* bindings[] = {const_cast<float*>(x), y};
  ASSERT_TRUE(context->executeV2(bindings));
  EXPECT_EQ(y[0], 4);
}

TEST_F(EngineTest, AnyOrderOfDestruction) {
  const auto plan = build();
  ASSERT_NE(plan, nullptr);
  auto engine = load(*plan);
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
  EXPECT_EQ(&context->getEngine(), engine.get());
  runtime.reset();
  engine.reset();
  EXPECT_EQ(context->getEngine().getNbIOTensors(), 2);
  EXPECT_NE(std::string(inspector->getEngineInformation(LayerInformationFormat::kJSON)).find("\"Bindings\""),
            std::string::npos);
  Growing output;
  const float x[] = {1, 2, 3};
  EXPECT_TRUE(context->setOutputAllocator("y", &output));
  EXPECT_EQ(context->getOutputAllocator("y"), &output);
  EXPECT_TRUE(context->setInputShape("x", Dims2(1, 3)));
  EXPECT_TRUE(context->setInputTensorAddress("x", x));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.text.back();
  EXPECT_EQ(output.shape.d[1], 2);
  EXPECT_EQ(static_cast<float*>(output.memory)[0], 4);
}

TEST_F(EngineTest, SentinelsOfUnknownTensors) {
  const auto plan = build();
  ASSERT_NE(plan, nullptr);
  const auto engine = load(*plan);
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  EXPECT_EQ(engine->getTensorShape("z").nbDims, -1);
  EXPECT_EQ(engine->getTensorDataType("z"), DataType::kFLOAT);
  EXPECT_EQ(engine->getTensorLocation("z"), TensorLocation::kDEVICE);
  EXPECT_EQ(engine->getTensorIOMode("z"), TensorIOMode::kNONE);
  EXPECT_EQ(engine->getTensorFormat("z"), TensorFormat::kLINEAR);
  EXPECT_STREQ(engine->getTensorFormatDesc("z"), "");
  EXPECT_EQ(engine->getTensorBytesPerComponent("x"), -1);
  EXPECT_EQ(engine->getTensorVectorizedDim("x"), -1);
  EXPECT_EQ(engine->getProfileShape("z", 0, OptProfileSelector::kMIN).nbDims, -1);
  EXPECT_EQ(engine->getProfileShape("x", 1, OptProfileSelector::kMIN).nbDims, -1);
  EXPECT_EQ(engine->getProfileTensorValuesV2("x", 0, OptProfileSelector::kMIN), nullptr);
  EXPECT_EQ(engine->getAliasedInputTensor("y"), nullptr);
  EXPECT_EQ(engine->getEngineStat(EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1);
  EXPECT_EQ(context->getTensorShape("z").nbDims, -1);
  EXPECT_EQ(context->getTensorStrides("z").nbDims, -1);
  EXPECT_EQ(context->getTensorAddress("z"), nullptr);
  EXPECT_EQ(context->getOutputAllocator("z"), nullptr);
  EXPECT_EQ(context->getMaxOutputSize("z"), -1);
  EXPECT_EQ(context->updateDeviceMemorySizeForShapes(), 0u);  // shapes are not set
  EXPECT_FALSE(context->setInputShape("z", Dims2(1, 3)));
  EXPECT_FALSE(context->setTensorAddress("z", nullptr));
  EXPECT_FALSE(context->setOptimizationProfileAsync(1, nullptr));
  EXPECT_FALSE(context->enqueueV3(nullptr));
}

// S117, S133.
TEST_F(EngineTest, UserManagedMemory) {
  const auto plan = build();
  ASSERT_NE(plan, nullptr);
  const auto engine = load(*plan);
  std::unique_ptr<IRuntimeConfig> runtime_config(engine->createRuntimeConfig());
  runtime_config->setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy::kUSER_MANAGED);
  EXPECT_TRUE(lathe::setCpuThreads(*runtime_config, 1));
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext(runtime_config.get()));
  ASSERT_NE(context, nullptr) << logger.text.back();
  context->setInputShape("x", Dims2(8, 3));
  const float x[24] = {1, 1, 1};
  float y[16] = {};
  context->setInputTensorAddress("x", x);
  context->setTensorAddress("y", y);
  const size_t bytes = context->updateDeviceMemorySizeForShapes();
  std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(256, (bytes + 256) / 256 * 256), &std::free);
  context->setDeviceMemoryV2(memory.get(), static_cast<int64_t>(bytes));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.text.back();
  EXPECT_EQ(y[0], 2);
  std::unique_ptr<IRuntimeConfig> read(context->getRuntimeConfig());
  EXPECT_EQ(read->getExecutionContextAllocationStrategy(), ExecutionContextAllocationStrategy::kUSER_MANAGED);
}

TEST_F(EngineTest, InspectionOnly) {
  const auto plan = build();
  lathe::setInspectionOnly(*runtime, true);
  const auto engine = load(*plan);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->getNbLayers() > 0, true);
  EXPECT_EQ(std::unique_ptr<IHostMemory>(engine->serialize())->size(), plan->size());
  EXPECT_EQ(engine->createExecutionContext(), nullptr);
  EXPECT_NE(logger.text.back().find("setInspectionOnly"), std::string::npos) << logger.text.back();
  lathe::setInspectionOnly(*runtime, false);
  EXPECT_NE(std::unique_ptr<IExecutionContext>(load(*plan)->createExecutionContext()), nullptr);
}

TEST_F(EngineTest, ProfilerInspectorReports) {
  config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
  const auto plan = build();
  ASSERT_NE(plan, nullptr);
  const auto engine = load(*plan);
  EXPECT_EQ(engine->getProfilingVerbosity(), ProfilingVerbosity::kDETAILED);
  std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
  EXPECT_NE(std::string(inspector->getLayerInformation(0, LayerInformationFormat::kJSON)).find("LayerType"),
            std::string::npos);
  EXPECT_STREQ(inspector->getLayerInformation(99, LayerInformationFormat::kJSON), "");
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  Times times;
  context->setProfiler(&times);
  const float x[] = {1, 2, 3};
  float y[2];
  context->setInputShape("x", Dims2(1, 3));
  context->setInputTensorAddress("x", x);
  context->setTensorAddress("y", y);
  ASSERT_TRUE(context->enqueueV3(nullptr));
  EXPECT_EQ(static_cast<int32_t>(times.layers.size()), engine->getNbLayers());
  context->setEnqueueEmitsProfile(false);
  times.layers.clear();
  ASSERT_TRUE(context->enqueueV3(nullptr));
  EXPECT_TRUE(times.layers.empty());
  EXPECT_TRUE(context->reportToProfiler());
  EXPECT_FALSE(times.layers.empty());

  const std::unique_ptr<IHostMemory> report(lathe::buildReportJson(*builder));
  ASSERT_NE(report, nullptr);
  for (const char* field : {"\"layers\"", "\"candidates\"", "\"predicted_milliseconds\"", "\"arena_bytes\": "})
    EXPECT_NE(std::strstr(static_cast<const char*>(report->data()), field), nullptr) << field;
  const std::unique_ptr<IHostMemory> described(lathe::planJson(plan->data(), plan->size()));
  ASSERT_NE(described, nullptr) << lathe::lastError();
  EXPECT_NE(std::strstr(static_cast<const char*>(described->data()), "\"bindings\""), nullptr);
}

TEST_F(EngineTest, ProgressAndCancel) {
  Monitor monitor;
  config->setProgressMonitor(&monitor);
  EXPECT_NE(build(), nullptr);
  EXPECT_GT(monitor.steps, 0);
  EXPECT_EQ(monitor.open, 0);
  monitor.limit = monitor.steps;  // the next step cancels
  EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
  EXPECT_EQ(monitor.open, 0);
  EXPECT_EQ(logger.text.size(), 1u);
}

TEST_F(EngineTest, PlansForAnotherCpuAreBuiltButDoNotRun) {
#if defined(__x86_64__)
  const char* foreign = "cpu-arm64";
#else
  const char* foreign = "cpu-x86_64";
#endif
  EXPECT_TRUE(lathe::setTarget(*config, foreign));
  EXPECT_EQ(std::string(lathe::getTarget(*config)), std::string(foreign) + "-baseline");
  const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
  ASSERT_NE(plan, nullptr) << lathe::lastError();
  EXPECT_TRUE(logger.text.empty());
  EXPECT_EQ(runtime->deserializeCudaEngine(plan->data(), plan->size()), nullptr);
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.text[0].find("LATHE-4003"), std::string::npos) << logger.text[0];
  EXPECT_TRUE(lathe::setTarget(*config, "cpu"));
  EXPECT_NE(build(), nullptr);
}

TEST_F(EngineTest, DamagedPlansAreRefused) {
  const auto plan = build();
  ASSERT_NE(plan, nullptr);
  std::vector<char> bytes(static_cast<char*>(plan->data()), static_cast<char*>(plan->data()) + plan->size());
  bytes[bytes.size() / 2] ^= 1;
  EXPECT_EQ(runtime->deserializeCudaEngine(bytes.data(), bytes.size()), nullptr);
  EXPECT_EQ(runtime->deserializeCudaEngine(bytes.data(), 10), nullptr);
  EXPECT_EQ(runtime->deserializeCudaEngine(nullptr, 0), nullptr);
  EXPECT_EQ(logger.text.size(), 3u);
}

// An engine for that shape of the network's one input.
std::unique_ptr<ICudaEngine> engine_for(IBuilder& builder, INetworkDefinition& network,
                                        const lathe::NamedTensor& input) {
  const std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
  config->setBuilderOptimizationLevel(0);
  config->clearFlag(BuilderFlag::kTF32);  // the result is compared with one in float32
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  for (const auto select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    profile->setDimensions(input.name, select, input.dims);
  config->addOptimizationProfile(profile);
  return std::unique_ptr<ICudaEngine>(builder.buildEngineWithConfig(network, *config));
}

TEST(Digits, TheWholeWay) {
  std::vector<float> pixels(28 * 28);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 7) / 7;
  Errors logger;
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  ASSERT_TRUE(parser->parseFromFile(kDigits.c_str(), 2));
  Dims dims = network->getInput(0)->getDimensions();
  size_t volume = 1;
  for (int32_t i = 0; i < dims.nbDims; ++i) volume *= static_cast<size_t>(dims.d[i] = dims.d[i] < 0 ? 1 : dims.d[i]);
  pixels.resize(volume);
  const lathe::NamedTensor input{network->getInput(0)->getName(), DataType::kFLOAT, dims, pixels.data()};
  const std::unique_ptr<ICudaEngine> engine = engine_for(*builder, *network, input);
  ASSERT_NE(engine, nullptr) << lathe::lastError();
  const std::unique_ptr<IHostMemory> report(lathe::compareJson(*engine, kDigits.c_str(), &input, 1, nullptr));
  ASSERT_NE(report, nullptr) << lathe::lastError();
  EXPECT_NE(std::strstr(static_cast<const char*>(report->data()), "\"passed\": true"), nullptr)
      << static_cast<const char*>(report->data());
  EXPECT_EQ(lathe::compareJson(*engine, kDigits.c_str(), &input, 1, R"({"colour": 1})"), nullptr);
  EXPECT_EQ(lathe::compareJson(*engine, "no_such.onnx", &input, 1, nullptr), nullptr);
  lathe::NamedTensor other = input;
  other.name = "no_input";
  EXPECT_EQ(lathe::compareJson(*engine, kDigits.c_str(), &other, 1, nullptr), nullptr);

  const std::unique_ptr<lathe::ITensorList> wanted(lathe::evaluate(kDigits.c_str(), &input, 1));
  ASSERT_NE(wanted, nullptr) << lathe::lastError();
  const auto beside = [&](const lathe::NamedTensor* tensors, int32_t count, const char* options) {
    return std::unique_ptr<IHostMemory>(lathe::compareWithTensorsJson(*engine, &input, 1, tensors, count, options));
  };
  const std::unique_ptr<IHostMemory> both = beside(wanted->get(0), 1, nullptr);
  ASSERT_NE(both, nullptr) << lathe::lastError();
  EXPECT_NE(std::strstr(static_cast<const char*>(both->data()), wanted->get(0)->name), nullptr);
  EXPECT_EQ(beside(nullptr, 1, nullptr), nullptr);
  EXPECT_EQ(beside(wanted->get(0), 1, R"({"doubles": true})"), nullptr);
}

}  // namespace
}  // namespace nvinfer1
