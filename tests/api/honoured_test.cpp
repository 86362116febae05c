// SPDX-License-Identifier: Apache-2.0
// What settings do that settings.def calls honoured.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include "api/settings_world.h"

namespace nvinfer1 {
namespace {

struct Lines : ILogger {
  void log(Severity severity, const char* message) noexcept override { text[severity].emplace_back(message); }
  size_t count(Severity severity, const char* part) const {
    const auto it = text.find(severity);
    if (it == text.end()) return 0;
    return static_cast<size_t>(std::count_if(it->second.begin(), it->second.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    }));
  }
  std::map<Severity, std::vector<std::string>> text;
};

struct Seen : IDebugListener {
  bool processDebugTensor(const void* data, TensorLocation location, DataType type, const Dims& dims, const char* name,
                          cudaStream_t) override {
    // The output is where the application has it.
    EXPECT_EQ(location, is_on_host || std::string(name) == "y" ? TensorLocation::kHOST : TensorLocation::kDEVICE)
        << name;
    EXPECT_EQ(type, DataType::kFLOAT);
    int64_t volume = 1;
    for (int32_t d = 0; d < dims.nbDims; ++d) volume *= dims.d[d];
    const auto* values = static_cast<const float*>(data);
    tensors[name].assign(values, values + volume);
    return answer;
  }
  std::map<std::string, std::vector<float>> tensors;
  bool answer = true;
  bool is_on_host = !on_gpu();
};

using Floats = std::vector<float>;

// y = tanh(x + x) over x[n, 2], n from 1 to 4.
class Honoured : public testing::Test {
 protected:
  Honoured() {
    sum->setName("sum");
    sum->getOutput(0)->setName("twice");
    tanh->getOutput(0)->setName("y");
    network->markOutput(*tanh->getOutput(0));
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 2));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(2, 2));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(4, 2));
    config->addOptimizationProfile(profile);
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    lathe::setBuildBudget(*config, 0);
  }
  void load() {
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr) << lathe::lastError();
    engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_NE(engine, nullptr) << lathe::lastError();
    context.reset(engine->createExecutionContext());
    ASSERT_NE(context, nullptr) << lathe::lastError();
  }
  bool run(const Floats& x) {
    input = x;
    output.assign(x.size(), 0);
    return context->setInputShape("x", Dims2(static_cast<int64_t>(x.size()) / 2, 2)) &&
           context->setInputTensorAddress("x", input.data()) && context->setTensorAddress("y", output.data()) &&
           context->enqueueV3(nullptr);
  }
  std::string engine_text(const IExecutionContext* shapes = nullptr) {
    const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
    EXPECT_TRUE(inspector->setExecutionContext(shapes));
    return inspector->getEngineInformation(LayerInformationFormat::kJSON);
  }
  std::string report() {
    const std::unique_ptr<IHostMemory> text(lathe::buildReportJson(*builder));
    return static_cast<const char*>(text->data());
  }

  Lines log;
  std::unique_ptr<IBuilder> builder{createInferBuilder(log)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 2));
  IElementWiseLayer* sum = network->addElementWise(*x, *x, ElementWiseOperation::kSUM);
  IActivationLayer* tanh = network->addActivation(*sum->getOutput(0), ActivationType::kTANH);
  std::unique_ptr<IRuntime> runtime{createInferRuntime(log)};
  std::unique_ptr<ICudaEngine> engine;
  std::unique_ptr<IExecutionContext> context;
  Floats input, output;
};

TEST_F(Honoured, DebugTensorsReachTheListener) {
  if (on_real_gpu()) GTEST_SKIP() << "its listener reads where the tensors lie";
  EXPECT_FALSE(network->markDebug(*x));
  EXPECT_TRUE(network->markDebug(*sum->getOutput(0)));
  EXPECT_TRUE(network->markDebug(*tanh->getOutput(0)));
  load();
  EXPECT_EQ(engine->getNbIOTensors(), 2);
  EXPECT_EQ(engine->getIOTensorName(2), nullptr);
  EXPECT_EQ(engine->getTensorIOMode("twice"), TensorIOMode::kNONE);
  EXPECT_TRUE(engine->isDebugTensor("twice"));
  EXPECT_TRUE(engine->isDebugTensor("y"));
  EXPECT_FALSE(engine->isDebugTensor("x"));
  Seen seen;
  EXPECT_TRUE(context->setDebugListener(&seen));
  ASSERT_TRUE(run({1, 2})) << lathe::lastError();
  EXPECT_TRUE(seen.tensors.empty());  // none is turned on
  EXPECT_TRUE(context->setTensorDebugState("twice", true));
  EXPECT_TRUE(context->getDebugState("twice"));
  EXPECT_FALSE(context->setTensorDebugState("x", true));
  for (const Floats& values : {Floats{1, 2}, Floats{1, 2, 3, 4}, Floats{5, 6}}) {
    ASSERT_TRUE(run(values)) << lathe::lastError();
    Floats twice = values;
    for (float& value : twice) value *= 2;
    EXPECT_EQ(seen.tensors, (std::map<std::string, Floats>{{"twice", twice}}));
    EXPECT_FLOAT_EQ(output[0], std::tanh(twice[0]));
  }
  EXPECT_TRUE(context->setAllTensorsDebugState(true));
  ASSERT_TRUE(run({1, 2}));
  EXPECT_EQ(seen.tensors.at("y"), output);
  seen.answer = false;
  EXPECT_FALSE(run({1, 2}));
  EXPECT_NE(std::string(lathe::lastError()).find("'twice'"), std::string::npos) << lathe::lastError();
  EXPECT_TRUE(context->setAllTensorsDebugState(false));
  EXPECT_TRUE(run({1, 2}));
  void* bindings[] = {input.data(), output.data()};
  EXPECT_TRUE(context->executeV2(bindings)) << lathe::lastError();
}

TEST_F(Honoured, ResultsOfStepsReachTheListener) {
  network->markUnfusedTensorsAsDebugTensors();
  network->markDebug(*sum->getOutput(0));  // so that there are two steps
  load();
  EXPECT_FALSE(engine->isDebugTensor("y"));
  Seen seen;
  seen.is_on_host = true;  // each result is fetched
  EXPECT_TRUE(context->setDebugListener(&seen));
  EXPECT_TRUE(context->setUnfusedTensorsDebugState(true));
  EXPECT_TRUE(context->getUnfusedTensorsDebugState());
  ASSERT_TRUE(run({1, 2, 3, 4})) << lathe::lastError();
  EXPECT_EQ(seen.tensors, (std::map<std::string, Floats>{{"twice", {2, 4, 6, 8}}, {"y", output}}));
  seen.answer = false;
  EXPECT_FALSE(run({1, 2}));
  EXPECT_NE(std::string(lathe::lastError()).find("listener returned false"), std::string::npos) << lathe::lastError();
  EXPECT_TRUE(context->setUnfusedTensorsDebugState(false));
  EXPECT_TRUE(run({1, 2}));
  EXPECT_TRUE(context->setUnfusedTensorsDebugState(true));
  EXPECT_TRUE(context->setDebugListener(nullptr));
  EXPECT_TRUE(run({1, 2}));
  network->unmarkUnfusedTensorsAsDebugTensors();
  load();
  EXPECT_FALSE(context->setUnfusedTensorsDebugState(true));
  EXPECT_FALSE(context->getUnfusedTensorsDebugState());
  EXPECT_TRUE(context->setUnfusedTensorsDebugState(false));
}

TEST_F(Honoured, DebugFlagMakesContextsWait) {
  load();
  EXPECT_FALSE(context->getDebugSync());
  config->setFlag(BuilderFlag::kDEBUG);
  load();
  EXPECT_TRUE(context->getDebugSync());
  EXPECT_TRUE(run({1, 2}));
}

TEST_F(Honoured, InspectorShowsMetadataAndShapes) {
  sum->setMetadata("from the model");
  load();
  EXPECT_NE(engine_text().find("\"Metadata\": \"from the model\""), std::string::npos) << engine_text();
  const std::regex open_size("\n *-1,");
  EXPECT_TRUE(std::regex_search(engine_text(), open_size));
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 6}));
  const std::string text = engine_text(context.get());
  EXPECT_FALSE(std::regex_search(text, open_size)) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("\n *3,"))) << text;
  const std::unique_ptr<ICudaEngine> kept = std::move(engine);
  load();
  const std::unique_ptr<IEngineInspector> other(kept->createEngineInspector());
  EXPECT_FALSE(other->setExecutionContext(context.get()));
}

// S102.
TEST_F(Honoured, MemoryIsMonitored) {
  load();
  EXPECT_NE(report().find("\"memory\": []"), std::string::npos) << report();
  config->setFlag(BuilderFlag::kMONITOR_MEMORY);
  lathe::setBuildBudget(*config, 5);  // measured where the device's memory is
  load();
  EXPECT_GT(log.count(ILogger::Severity::kINFO, "MiB resident"), 1u);
  EXPECT_NE(report().find("\"peak_bytes\""), std::string::npos);
  EXPECT_EQ(std::regex_search(report(), std::regex("\"device_peak_bytes\": [1-9]")), on_gpu()) << report();
}

// S94, S97, S132.
TEST_F(Honoured, WorkspaceIsLimited) {
  if (on_gpu()) GTEST_SKIP() << "no kernel is refused here; tests/kernels/cuda/memory_limit_test.cpp has those of GPUs";
  const std::vector<float> w(8 * 8 * 9, 0.25f);
  ITensor* image = network->addInput("image", DataType::kFLOAT, Dims4(1, 8, 24, 24));
  IConvolutionLayer* conv = network->addConvolutionNd(
      *image, 8, DimsHW(3, 3), Weights{DataType::kFLOAT, w.data(), static_cast<int64_t>(w.size())}, Weights{});
  network->markOutput(*conv->getOutput(0));
  load();
  EXPECT_EQ(report().find("bytes of workspace"), std::string::npos);
  config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 0);
  load();
  EXPECT_NE(report().find("bytes of workspace, 0 are allowed"), std::string::npos) << report();
  for (const size_t most : {1, 1 << 10, 1 << 14, 1 << 18}) {
    config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, most);
    load();
  }
}

// S93, S96, S129, S132: what does not fit is skipped and said so, and the build succeeds.
TEST_F(Honoured, MeasuringTakesNoMoreThanItMay) {
  lathe::setBuildBudget(*config, 5);
  config->setMemoryPoolLimit(MemoryPoolType::kTACTIC_DRAM, 1 << 20);
  load();
  EXPECT_EQ(log.count(ILogger::Severity::kINFO, "Skipping tactic"), 0u);
  config->setMemoryPoolLimit(MemoryPoolType::kTACTIC_DRAM, 16);
  load();
  EXPECT_GT(log.count(ILogger::Severity::kINFO, "Skipping tactic 0x"), 0u);
  EXPECT_GT(log.count(ILogger::Severity::kINFO, "bytes of memory for measuring, 16 are allowed"), 0u);
  EXPECT_TRUE(run({1, 2, 3, 4}));
}

// S94, S95, S129, S130: what there is, until something is set.
TEST_F(Honoured, PoolsBeginWithWhatThereIs) {
  if (on_real_gpu()) GTEST_SKIP() << "knows the emulated GPU's memory";
  const size_t bytes = on_gpu()
                           ? size_t{16} << 30  // the emulated one's
                           : static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(config->getMemoryPoolLimit(MemoryPoolType::kWORKSPACE), bytes);
  EXPECT_EQ(config->getMemoryPoolLimit(MemoryPoolType::kTACTIC_DRAM), bytes);
  EXPECT_EQ(config->getMemoryPoolLimit(MemoryPoolType::kDLA_MANAGED_SRAM), size_t{1} << 20);
  EXPECT_EQ(config->getMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM), size_t{1} << 30);
  EXPECT_EQ(config->getMemoryPoolLimit(MemoryPoolType::kDLA_GLOBAL_DRAM), size_t{1} << 29);
  const size_t shared = config->getMemoryPoolLimit(MemoryPoolType::kTACTIC_SHARED_MEMORY);
  EXPECT_EQ(shared == SIZE_MAX, !on_gpu()) << shared;
  for (int pool = 0; pool < EnumMax<MemoryPoolType>(); ++pool) {
    const auto which = static_cast<MemoryPoolType>(pool);
    config->setMemoryPoolLimit(which, (size_t{1} << 20) + static_cast<size_t>(pool));
    EXPECT_EQ(config->getMemoryPoolLimit(which), (size_t{1} << 20) + static_cast<size_t>(pool));
  }
  config->setMemoryPoolLimit(MemoryPoolType::kTACTIC_SHARED_MEMORY, 1);  // of which no kernel could run
  EXPECT_EQ(log.count(ILogger::Severity::kERROR, "1 bytes of shared memory"), 1u);
}

// S168, S174; what kernels compute is tests/kernels/distributive.graph.
TEST_F(Honoured, DistributiveIndependenceGoesWithOneProfile) {
  config->setFlag(BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
  EXPECT_TRUE(config->getFlag(BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE));
  load();
  IOptimizationProfile* second = builder->createOptimizationProfile();
  for (const OptProfileSelector selector :
       {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    second->setDimensions("x", selector, Dims2(3, 2));
  ASSERT_EQ(config->addOptimizationProfile(second), 1);
  EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
  EXPECT_NE(std::string(lathe::lastError()).find("goes with one optimization profile"), std::string::npos)
      << lathe::lastError();
  config->clearFlag(BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
  load();
}

TEST_F(Honoured, TacticsAreLimited) {
  if (on_gpu())
    GTEST_SKIP() << "measuring on the emulator takes minutes; TunerTest.NoMoreAreMeasuredThanMay is of every device";
  const int64_t size = 256;
  const std::vector<float> w(static_cast<size_t>(size * size), 0.25f);
  ITensor* rows = network->addInput("rows", DataType::kFLOAT, Dims2(size, size));
  ITensor* weights =
      network->addConstant(Dims2(size, size), Weights{DataType::kFLOAT, w.data(), size * size})->getOutput(0);
  network->markOutput(
      *network->addMatrixMultiply(*rows, MatrixOperation::kNONE, *weights, MatrixOperation::kNONE)->getOutput(0));
  lathe::setBuildBudget(*config, 20);
  load();
  const size_t all = log.count(ILogger::Severity::kVERBOSE, " us, predicted ");
  EXPECT_GT(all, 2u);
  log.text.clear();
  config->setMaxNbTactics(1);
  load();
  EXPECT_EQ(log.count(ILogger::Severity::kVERBOSE, " us, predicted "),
            log.count(ILogger::Severity::kVERBOSE, "timing "));
}

// S131.
TEST_F(Honoured, TheHostsMemoryMayBeLimited) {
  constexpr int32_t kSize = 256;
  const std::vector<float> w(size_t{kSize} * kSize, 0.25f);
  ITensor* rows = network->addInput("rows", DataType::kFLOAT, Dims2(1, kSize));
  ITensor* weights =
      network->addConstant(Dims2(kSize, kSize), Weights{DataType::kFLOAT, w.data(), kSize * kSize})->getOutput(0);
  network->markOutput(
      *network->addMatrixMultiply(*rows, MatrixOperation::kNONE, *weights, MatrixOperation::kNONE)->getOutput(0));
  const int64_t needed = 2 * static_cast<int64_t>(w.size() * sizeof(float));
  EXPECT_FALSE(lathe::setHostMemoryBudget(*config, -1));
  ASSERT_TRUE(lathe::setHostMemoryBudget(*config, needed - 1));
  EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
  EXPECT_EQ(log.count(ILogger::Severity::kERROR, "setHostMemoryBudget() allows"), 1u);
  ASSERT_TRUE(lathe::setHostMemoryBudget(*config, 2 * needed));
  load();
}

// What is measured, and what the cost model says of it, for a convolution whose weights are larger than the limit.
TEST_F(Honoured, TilingLevelsMeasureMore) {
  if (on_gpu()) GTEST_SKIP() << "measuring on the emulator takes minutes";
  constexpr int32_t kSize = 512;
  const std::vector<float> w(size_t{kSize} * kSize, 0.25f);
  ITensor* image = network->addInput("image", DataType::kFLOAT, Dims4(1, kSize, 16, 16));
  network->markOutput(
      *network
           ->addConvolutionNd(*image, kSize, Dims2(1, 1), Weights{DataType::kFLOAT, w.data(), kSize * kSize}, Weights{})
           ->getOutput(0));
  lathe::setBuildBudget(*config, 20);
  const auto predictions = [&] {
    log.text.clear();
    load();
    std::set<std::string> lines;  // without what was measured
    for (const std::string& line : log.text[ILogger::Severity::kVERBOSE])
      if (const size_t at = line.find(" us, predicted "); at != std::string::npos)
        lines.insert(line.substr(0, line.rfind(':', at)) + line.substr(at));
    return lines;
  };
  const size_t of_none = predictions().size();
  config->setTilingOptimizationLevel(TilingOptimizationLevel::kFAST);
  const size_t of_fast = predictions().size();
  EXPECT_GT(of_fast, of_none);
  config->setTilingOptimizationLevel(TilingOptimizationLevel::kFULL);
  const std::set<std::string> whole_cache = predictions();
  EXPECT_GE(whole_cache.size(), of_fast);  // there may be no more
  config->setL2LimitForTiling(4096);
  EXPECT_NE(predictions(), whole_cache);
  EXPECT_EQ(log.count(ILogger::Severity::kWARNING, "setL2LimitForTiling"), 0u);
  config->setTilingOptimizationLevel(TilingOptimizationLevel::kNONE);
  EXPECT_EQ(predictions().size(), of_none);
  EXPECT_EQ(log.count(ILogger::Severity::kWARNING, "setL2LimitForTiling(4096) has no effect"), 1u);
}

TEST_F(Honoured, NansAreStrict) {
  const float zero = 0;
  ITensor* zeros = network->addConstant(Dims2(1, 1), Weights{DataType::kFLOAT, &zero, 1})->getOutput(0);
  const std::pair<ITensor*, ElementWiseOperation> pairs[] = {
      {zeros, ElementWiseOperation::kPROD}, {x, ElementWiseOperation::kSUB}, {x, ElementWiseOperation::kDIV}};
  network->unmarkOutput(*tanh->getOutput(0));
  ITensor* all = nullptr;
  for (const auto& [other, operation] : pairs) {
    ITensor* result = network->addElementWise(*x, *other, operation)->getOutput(0);
    all = all ? network->addElementWise(*all, *result, ElementWiseOperation::kSUM)->getOutput(0) : result;
  }
  tanh->getOutput(0)->setName("z");
  all->setName("y");
  network->markOutput(*all);
  config->setFlag(BuilderFlag::kSTRICT_NANS);
  load();
  const float infinity = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(run({1, infinity, NAN, -2})) << lathe::lastError();
  EXPECT_EQ(output[0], 1);
  EXPECT_TRUE(std::isnan(output[1]));
  EXPECT_TRUE(std::isnan(output[2]));
  EXPECT_EQ(output[3], 1);
}

}  // namespace
}  // namespace nvinfer1
