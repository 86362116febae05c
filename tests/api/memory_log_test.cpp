// SPDX-License-Identifier: Apache-2.0
// What the log says of memory, in the words that tools for TensorRT look for.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

struct Lines : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity == Severity::kINFO) text.emplace_back(message);
  }
  // Of the first line that matches; empty = there is none.
  std::smatch find(const std::string& pattern) const {
    std::smatch match;
    for (const std::string& line : text)
      if (std::regex_match(line, match, std::regex(pattern))) break;
    return match;
  }
  int64_t number(const std::string& name) const {
    const std::smatch match = find(name + ": ([0-9]+) bytes");
    EXPECT_FALSE(match.empty()) << name;
    return match.empty() ? -1 : std::stoll(match[1]);
  }
  std::vector<std::string> text;
};

constexpr int32_t kWidth = 1024;  // so that weights are much larger than code

// y = softmax(x w) over x[n, kWidth], n from 1 to `most`; without a `most`, of any n.
class MemoryLog : public testing::Test {
 protected:
  std::unique_ptr<IHostMemory> build(int64_t most) {
    const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    const std::vector<float> weights(kWidth * kWidth, 0.5F);
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, kWidth));
    ITensor* w =
        network->addConstant(Dims2(kWidth, kWidth), {DataType::kFLOAT, weights.data(), kWidth * kWidth})->getOutput(0);
    ITensor* product = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
    ISoftMaxLayer* softmax = network->addSoftMax(*product);
    softmax->setAxes(2);
    ITensor* again =
        network->addMatrixMultiply(*softmax->getOutput(0), MatrixOperation::kNONE, *w, MatrixOperation::kNONE)
            ->getOutput(0);
    network->markOutput(*again);
    if (most > 0) {
      IOptimizationProfile* profile = builder->createOptimizationProfile();
      profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, kWidth));
      profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(1, kWidth));
      profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(most, kWidth));
      config->addOptimizationProfile(profile);
    }
    lathe::setBuildBudget(*config, 0);
    return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
  }
  std::unique_ptr<ICudaEngine> load(const IHostMemory& plan) {
    return std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  }
  Lines logger;
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
};

const std::string kChange = R"(: CPU ([+-][0-9]+), GPU ([+-][0-9]+), now: CPU ([0-9]+), GPU ([0-9]+) \(MiB\))";

// S112, S116, S120, S136: what the build tells is what the engine tells before there is any context.
TEST_F(MemoryLog, BuildsTellWhatContextsNeed) {
  const auto plan = build(4096);
  ASSERT_TRUE(plan) << lathe::lastError();
  const int64_t activations = logger.number("Total Activation Memory"), scratch = logger.number("Max Scratch Memory");
  const auto engine = load(*plan);
  ASSERT_TRUE(engine) << lathe::lastError();
  EXPECT_GE(activations, 4096 * kWidth * 4);  // what the products exchange
  EXPECT_GE(engine->getDeviceMemorySizeV2(), activations);
  EXPECT_LE(engine->getDeviceMemorySizeV2(), activations + scratch);
  EXPECT_EQ(engine->getDeviceMemorySizeV2(), engine->getDeviceMemorySizeForProfileV2(0));
  EXPECT_EQ(logger.number("Total Weights Memory"), engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE));
  EXPECT_GT(logger.number("Total Host Persistent Memory"), 0);
  const auto weights = static_cast<double>(engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE));
  EXPECT_NEAR(static_cast<double>(plan->size()), weights, weights / 10);  // S105
  EXPECT_EQ(logger.number("Total Device Persistent Memory"), 0);
  EXPECT_FALSE(logger.find("Engine generation completed in [0-9]+\\.[0-9]+ seconds\\.").empty());
}

// S113, S115: what a late layer works in lies where the large tensors of early ones were, and is no more than may be.
TEST_F(MemoryLog, ScratchLiesWhereActivationsLeaveRoom) {
  if (on_gpu()) GTEST_SKIP() << "the layers need no scratch there; Arena.* arranges what others need";
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  const std::vector<float> weights(32 * 32 * 9, 0.25F);
  const auto convolve = [&](ITensor* x, int64_t channels) {
    const Weights kernel{DataType::kFLOAT, weights.data(), 32 * channels * 9};
    IConvolutionLayer* layer = network->addConvolutionNd(*x, 32, Dims2(3, 3), kernel, {});
    layer->setPaddingNd(Dims2(1, 1));
    return layer->getOutput(0);
  };
  ITensor* first = convolve(network->addInput("x", DataType::kFLOAT, Dims4(1, 3, 64, 64)), 3);
  IPoolingLayer* pool = network->addPoolingNd(*first, PoolingType::kMAX, Dims2(4, 4));
  pool->setStrideNd(Dims2(4, 4));
  network->markOutput(*convolve(convolve(pool->getOutput(0), 32), 32));
  lathe::setBuildBudget(*config, 0);
  const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
  ASSERT_TRUE(plan) << lathe::lastError();
  const auto engine = load(*plan);
  ASSERT_TRUE(engine) << lathe::lastError();
  const int64_t activations = logger.number("Total Activation Memory"), scratch = logger.number("Max Scratch Memory");
  EXPECT_GT(scratch, 0);
  EXPECT_LT(engine->getDeviceMemorySizeV2(), activations + scratch);
  EXPECT_GE(engine->getDeviceMemorySizeV2(), std::max(activations, scratch));
  for (const int64_t most : {scratch - 1, int64_t{0}}) {
    config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, static_cast<size_t>(most));
    logger.text.clear();
    ASSERT_TRUE(std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config))) << lathe::lastError();
    EXPECT_LE(logger.number("Max Scratch Memory"), most);
  }
}

// S118, S134: two contexts work in one block by turns, and nothing that lies there in between matters.
TEST_F(MemoryLog, ContextsMayShareTheApplicationsMemory) {
  const auto plan = build(16);
  ASSERT_TRUE(plan) << lathe::lastError();
  const auto engine = load(*plan);
  const auto size = static_cast<size_t>(engine->getDeviceMemorySizeV2());
  ASSERT_GT(size, 0u);
  const std::shared_ptr<void> block = context_memory(size);
  std::vector<float> x(16 * kWidth), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  const auto run = [&](IExecutionContext& context, int64_t rows) {
    std::fill(y.begin(), y.end(), -1.0F);
    EXPECT_TRUE(context.setInputShape("x", Dims2(rows, kWidth)) && context.setTensorAddress("x", x.data()) &&
                context.setTensorAddress(engine->getIOTensorName(1), y.data()) && context.enqueueV3(nullptr))
        << lathe::lastError();
    return y;
  };
  const std::unique_ptr<IExecutionContext> own(engine->createExecutionContext());
  constexpr auto kUser = ExecutionContextAllocationStrategy::kUSER_MANAGED;
  const std::unique_ptr<IExecutionContext> contexts[] = {
      std::unique_ptr<IExecutionContext>(engine->createExecutionContext(kUser)),
      std::unique_ptr<IExecutionContext>(engine->createExecutionContext(kUser))};
  for (const auto& context : contexts) context->setDeviceMemoryV2(block.get(), static_cast<int64_t>(size));
  for (int64_t rows : {16, 1, 7, 16, 15})
    for (const auto& context : contexts) {
      const std::vector<float> expected = run(*own, rows);
      if (!on_real_gpu()) std::memset(block.get(), 0xAB, size);
      EXPECT_EQ(run(*context, rows), expected) << rows;
    }
}

TEST_F(MemoryLog, SizesWithoutALimitAreNotMadeUp) {
  ASSERT_TRUE(build(0)) << lathe::lastError();
  EXPECT_TRUE(logger.find("Max Scratch Memory: .*").empty());
  EXPECT_FALSE(logger.find("Total Activation Memory: not known .*").empty());
  EXPECT_GE(logger.number("Total Weights Memory"), kWidth * kWidth * 4);
}

// S124, S125: the change is the difference of what there is now and what there was before.
TEST_F(MemoryLog, ChangesAreToldWhereMemoryIsTaken) {
  const auto plan = build(32768);
  ASSERT_TRUE(plan) << lathe::lastError();
  EXPECT_FALSE(logger.find(R"(\[MemUsageChange\] TensorRT-managed allocation in building engine)" + kChange).empty());
  EXPECT_FALSE(
      logger.find(R"(\[MemUsageStats\] Peak memory usage of TRT CPU/GPU memory allocators: CPU [0-9]+ MiB, GPU 0 MiB)")
          .empty());
  const auto engine = load(*plan);
  EXPECT_FALSE(logger.find("Loaded engine size: [0-9]+ MiB").empty());
  const auto loaded =
      logger.find(R"(\[MemUsageChange\] TensorRT-managed allocation in engine deserialization)" + kChange);
  ASSERT_FALSE(loaded.empty());
  const int64_t after_load = std::stoll(loaded[3]);
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  const auto made =
      logger.find(R"(\[MemUsageChange\] TensorRT-managed allocation in IExecutionContext creation)" + kChange);
  ASSERT_FALSE(made.empty());
  EXPECT_EQ(std::stoll(made[1]), std::stoll(made[3]) - after_load);
  // Which of the two is the device's: the first number is of the host.
  const std::string change = made[on_gpu() ? 2 : 1], other = made[on_gpu() ? 1 : 2];
  EXPECT_GE(std::stoll(change), (engine->getDeviceMemorySizeV2() >> 20) - 1);
  EXPECT_LE(std::stoll(change), (engine->getDeviceMemorySizeV2() >> 20) + 3);  // whole pages, which may be large
  EXPECT_LE(std::stoll(other), 3);
  EXPECT_EQ(made[4] == "0", !on_gpu());
}

// S142: of GPUs, once.
TEST_F(MemoryLog, WarnsOfCodeThatIsLoadedEagerly) {
  struct Warnings : ILogger {
    void log(Severity severity, const char* message) noexcept override {
      if (severity == Severity::kWARNING && std::strstr(message, "CUDA_MODULE_LOADING")) ++count;
    }
    int count = 0;
  } warnings;
  const auto plan = build(1);
  const std::unique_ptr<IRuntime> heard(createInferRuntime(warnings));
  const auto load_once = [&] {
    EXPECT_NE(std::unique_ptr<ICudaEngine>(heard->deserializeCudaEngine(plan->data(), plan->size())), nullptr);
    return warnings.count;
  };
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  EXPECT_EQ(load_once(), 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  const int once = on_gpu() ? 1 : 0;
  EXPECT_EQ(load_once(), once);
  EXPECT_EQ(load_once(), once);
  unsetenv("CUDA_MODULE_LOADING");
}

}  // namespace
}  // namespace nvinfer1
