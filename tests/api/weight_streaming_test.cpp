// SPDX-License-Identifier: Apache-2.0
// BuilderFlag::kWEIGHT_STREAMING: whatever a budget leaves out of the device's memory, results are the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

constexpr int64_t kRows = 4, kWidth = 64;
// Columns of the layers' weights: 8 KiB to 48 KiB each, the last one small enough to stay where it is.
constexpr std::array<int64_t, 6> kColumns{64, 128, 32, 96, 64, 8};

// What the emulated GPU tells; of a real one, only the driver knows.
size_t device_bytes() { return driver_function<size_t(int)>("fake_cuda_allocated_bytes")(0); }
void fail_call(const char* function, size_t nth) {
  driver_function<void(const char*, size_t, int, int)>("fake_cuda_fail")(function, nth, 2,
                                                                         0);  // CUDA_ERROR_OUT_OF_MEMORY
}

std::vector<float> numbers(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> list(count);
  for (float& x : list) x = static_cast<float>(static_cast<int>(generator() % 2001) - 1000) / 4000.0F;
  return list;
}

class WeightStreaming : public testing::Test {
 protected:
  // y = relu(... relu(x * w0) * w1 ...); with `branches`, the sum of two of these.
  std::unique_ptr<IHostMemory> build(bool streams, bool branches = false) {
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    weights_.clear();
    ITensor* const x = network->addInput("x", DataType::kFLOAT, Dims2(kRows, kWidth));
    ITensor* y = add_layers(*network, x);
    if (branches) y = network->addElementWise(*y, *add_layers(*network, x), ElementWiseOperation::kSUM)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    if (streams) config->setFlag(BuilderFlag::kWEIGHT_STREAMING);
    if (refits) config->setFlag(BuilderFlag::kREFIT);
    if (branches) config->setMaxAuxStreams(2);
    lathe::setBuildBudget(*config, 0);
    return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
  }

  ITensor* add_layers(INetworkDefinition& network, ITensor* x) {
    for (const int64_t columns : kColumns)
      x = network.addActivation(*multiply(network, *x, columns), ActivationType::kRELU)->getOutput(0);
    return x;
  }

  ITensor* multiply(INetworkDefinition& network, ITensor& x, int64_t columns) {
    const int64_t rows = x.getDimensions().d[1];
    const auto count = static_cast<size_t>(rows * columns);
    weights_.push_back(numbers(count, static_cast<unsigned>(weights_.size())));
    auto* const given = network.addConstant(
        Dims2(rows, columns), Weights{DataType::kFLOAT, weights_.back().data(), static_cast<int64_t>(count)});
    return network.addMatrixMultiply(x, MatrixOperation::kNONE, *given->getOutput(0), MatrixOperation::kNONE)
        ->getOutput(0);
  }

  std::unique_ptr<ICudaEngine> load(const IHostMemory& plan) {
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
    EXPECT_TRUE(engine || is_to_fail) << logger.last();
    return engine;
  }

  // Step by step, captured, and replayed with other inputs at the same address.
  std::vector<float> run(IExecutionContext& context) {
    std::vector<float> x(kRows * kWidth), y(kRows * kColumns.back()), all;
    EXPECT_TRUE(context.setTensorAddress("x", x.data()));
    EXPECT_TRUE(context.setTensorAddress("y", y.data()));
    for (unsigned seed = 100; seed < 104; ++seed) {
      const std::vector<float> given = numbers(x.size(), seed);
      std::copy(given.begin(), given.end(), x.begin());
      EXPECT_TRUE(context.enqueueV3(nullptr)) << logger.last();
      all.insert(all.end(), y.begin(), y.end());
    }
    EXPECT_GT(*std::max_element(all.begin(), all.end()), 0);
    return all;
  }

  std::vector<float> run(ICudaEngine& engine) {
    const std::unique_ptr<IExecutionContext> context(engine.createExecutionContext());
    if (!context) return ADD_FAILURE() << logger.last(), std::vector<float>();
    return run(*context);
  }

  void expect_refused(ICudaEngine& engine, int64_t budget, const char* words) {
    const size_t reports = logger.text.size();
    EXPECT_FALSE(engine.setWeightStreamingBudgetV2(budget));
    EXPECT_EQ(logger.text.size(), reports + 1);
    EXPECT_NE(logger.last().find(words), std::string::npos) << logger.last();
  }

  bool refits = false, is_to_fail = false;
  Errors logger;
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
  std::vector<std::vector<float>> weights_;
};

TEST_F(WeightStreaming, HasNoEffectOnACpuAndIsToldOnce) {
  if (on_gpu()) GTEST_SKIP() << "of CPUs";
  logger.most = ILogger::Severity::kWARNING;
  const auto plan = build(true);
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.last().find("kWEIGHT_STREAMING has no effect"), std::string::npos) << logger.last();
  const auto engine = load(*plan);
  EXPECT_EQ(engine->getStreamableWeightsSize(), 0);
  EXPECT_TRUE(engine->setWeightStreamingBudgetV2(0));
  expect_refused(*engine, 1, "no weights of this engine can be streamed");
  EXPECT_EQ(engine->getWeightStreamingBudgetV2(), 0);
}

TEST_F(WeightStreaming, HasNoEffectOnWeightsThatCanBeReplaced) {
  if (!on_gpu()) GTEST_SKIP() << "of GPUs";
  refits = true;
  logger.most = ILogger::Severity::kWARNING;
  const auto plan = build(true);
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.last().find("weights that can be replaced"), std::string::npos) << logger.last();
  const auto engine = load(*plan);
  ASSERT_TRUE(engine) << logger.last();
  EXPECT_EQ(engine->getStreamableWeightsSize(), 0);
}

// S109: the sizes that an engine tells of its weights are the same under all budgets.
TEST_F(WeightStreaming, GivesTheSameResultsUnderEachBudget) {
  if (!on_gpu()) GTEST_SKIP() << "of GPUs";
  const auto plain = load(*build(false)), engine = load(*build(true));
  ASSERT_TRUE(plain && engine) << logger.last();
  EXPECT_EQ(plain->getStreamableWeightsSize(), 0);
  const std::vector<float> wanted = run(*plain);
  const int64_t all = engine->getStreamableWeightsSize(),
                total = engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE);
  EXPECT_EQ(total, plain->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE));
  EXPECT_EQ(engine->getWeightStreamingBudgetV2(), all);
  EXPECT_EQ(engine->getWeightStreamingScratchMemorySize(), 0);
  // All but the last layer's, which are small.
  EXPECT_GE(all, 4 * (64 * 64 + 64 * 128 + 128 * 32 + 32 * 96 + 96 * 64));
  for (const int64_t budget : {all, all - 1, all / 2, all / 3, int64_t{1}, int64_t{0}}) {
    EXPECT_TRUE(engine->setWeightStreamingBudgetV2(budget)) << logger.last();
    EXPECT_EQ(engine->getWeightStreamingBudgetV2(), budget);
    EXPECT_EQ(engine->getWeightStreamingScratchMemorySize() > 0, budget < all);
    EXPECT_EQ(run(*engine), wanted) << budget;
    EXPECT_EQ(engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE), total);
    EXPECT_EQ(engine->getStreamableWeightsSize(), all);
  }
  EXPECT_TRUE(engine->setWeightStreamingBudgetV2(2 * all));
  EXPECT_EQ(engine->getWeightStreamingBudgetV2(), all);
  EXPECT_EQ(run(*engine), wanted);
}

TEST_F(WeightStreaming, KeepsToItsBudget) {
  if (!on_gpu() || on_real_gpu()) GTEST_SKIP() << "counts what the emulated GPU has given";
  const auto engine = load(*build(true));
  ASSERT_TRUE(engine) << logger.last();
  const int64_t all = engine->getStreamableWeightsSize();
  const size_t loaded = device_bytes();
  EXPECT_LT(loaded, static_cast<size_t>(all));  // until a context is made
  size_t former = SIZE_MAX;
  for (const int64_t budget : {all, all / 2, all / 4, int64_t{0}}) {
    ASSERT_TRUE(engine->setWeightStreamingBudgetV2(budget));
    EXPECT_EQ(device_bytes(), loaded);
    const std::unique_ptr<IExecutionContext> first(
        engine->createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED));
    const size_t with_one = device_bytes();
    const auto scratch = static_cast<size_t>(engine->getWeightStreamingScratchMemorySize());
    EXPECT_LE(with_one - loaded, static_cast<size_t>(budget) + scratch + 64);  // whole vectors
    EXPECT_LT(with_one, former);
    const std::unique_ptr<IExecutionContext> second(
        engine->createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED));
    EXPECT_LE(device_bytes() - with_one, scratch + 32);  // weights that stay are shared
    former = with_one;
  }
}

TEST_F(WeightStreaming, RefusesWhatItCannotDo) {
  if (!on_gpu()) GTEST_SKIP() << "of GPUs";
  const auto engine = load(*build(true)), plain = load(*build(false));
  ASSERT_TRUE(plain && engine) << logger.last();
  expect_refused(*engine, -1, "a budget of -1 bytes");
  expect_refused(*engine, INT64_MIN, "at least 0");
  expect_refused(*plain, 1, "no weights of this engine can be streamed");
  const int64_t all = engine->getStreamableWeightsSize();
  for (int contexts = 1; contexts < 3; ++contexts) {
    const std::unique_ptr<IExecutionContext> one(engine->createExecutionContext());
    const std::unique_ptr<IExecutionContext> two(contexts > 1 ? engine->createExecutionContext() : nullptr);
    expect_refused(*engine, 0, (std::to_string(contexts) + " contexts of the engine").c_str());
    EXPECT_EQ(engine->getWeightStreamingBudgetV2(), all);
  }
  EXPECT_TRUE(engine->setWeightStreamingBudgetV2(0));
}

TEST_F(WeightStreaming, SuggestsABudgetOfWhatIsFree) {
  if (!on_gpu() || on_real_gpu()) GTEST_SKIP() << "sets how much of the emulated GPU is free";
  const auto engine = load(*build(true));
  ASSERT_TRUE(engine) << logger.last();
  const int64_t all = engine->getStreamableWeightsSize();
  EXPECT_EQ(engine->getWeightStreamingAutomaticBudget(), all);
  const auto use = driver_function<void(int, size_t)>("fake_cuda_use_memory");
  constexpr size_t kDevice = size_t{16} << 30, kReserve = kDevice / 20;
  use(0, kDevice);
  EXPECT_EQ(engine->getWeightStreamingAutomaticBudget(), 0);
  use(0, kDevice - kReserve - static_cast<size_t>(all) / 2 - device_bytes());
  const int64_t budget = engine->getWeightStreamingAutomaticBudget();
  EXPECT_GT(budget, 0);
  EXPECT_LE(budget, all / 2);
  EXPECT_TRUE(engine->setWeightStreamingBudgetV2(budget));
  const std::vector<float> under_budget = run(*engine);
  use(0, 0);
  EXPECT_TRUE(engine->setWeightStreamingBudgetV2(all));
  EXPECT_EQ(run(*engine), under_budget);
}

// Failures of each call that streaming makes; what was there before goes on.
TEST_F(WeightStreaming, SurvivesFailures) {
  if (!on_gpu() || on_real_gpu()) GTEST_SKIP() << "has the emulated GPU fail";
  const auto plan = build(true);
  fail_call("cuMemHostAlloc", 1);
  is_to_fail = true;
  EXPECT_EQ(load(*plan), nullptr);
  EXPECT_NE(logger.last().find("of the host's memory"), std::string::npos) << logger.last();
  const auto engine = load(*plan);
  const std::vector<float> wanted = run(*engine);
  ASSERT_TRUE(engine->setWeightStreamingBudgetV2(0));
  fail_call("cuMemAllocAsync", 1);
  EXPECT_EQ(std::unique_ptr<IExecutionContext>(engine->createExecutionContext()), nullptr);
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  ASSERT_NE(context, nullptr) << logger.last();
  std::vector<float> x(kRows * kWidth), y(kRows * kColumns.back());
  EXPECT_TRUE(context->setTensorAddress("x", x.data()));
  EXPECT_TRUE(context->setTensorAddress("y", y.data()));
  for (const char* call : {"cuMemcpyAsync", "cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernelEx"})
    for (size_t nth = 1; nth < 4; ++nth) {
      fail_call(call, nth);
      EXPECT_FALSE(context->enqueueV3(nullptr)) << call << nth;
    }
  EXPECT_EQ(run(*context), wanted);
  EXPECT_GT(driver_function<size_t(const char*)>("fake_cuda_live")("executable"),
            0U);  // copies are captured and replayed, too
}

TEST_F(WeightStreaming, GoesWithProfilersAuxiliaryStreamsAndSeveralContexts) {
  if (!on_gpu()) GTEST_SKIP() << "of GPUs";
  struct Count final : IProfiler {
    void reportLayerTime(const char*, float) noexcept override { ++calls; }
    int calls = 0;
  } profiler;
  const auto plain = load(*build(false, true)), engine = load(*build(true, true));
  ASSERT_TRUE(plain && engine) << logger.last();
  EXPECT_GT(plain->getNbAuxStreams(), 0);
  const std::vector<float> wanted = run(*plain);
  ASSERT_TRUE(engine->setWeightStreamingBudgetV2(engine->getStreamableWeightsSize() / 3));
  const std::unique_ptr<IExecutionContext> first(engine->createExecutionContext()),
      second(engine->createExecutionContext());
  EXPECT_EQ(run(*first), wanted);
  EXPECT_EQ(run(*second), wanted);
  first->setProfiler(&profiler);
  EXPECT_EQ(run(*first), wanted);
  EXPECT_GT(profiler.calls, 0);
}

TEST_F(WeightStreaming, SerializesToItsPlan) {
  if (!on_gpu()) GTEST_SKIP() << "of GPUs";
  const auto plan = build(true);
  const auto engine = load(*plan);
  ASSERT_TRUE(engine->setWeightStreamingBudgetV2(0));
  const std::unique_ptr<IHostMemory> again(engine->serialize());
  ASSERT_EQ(again->size(), plan->size());
  EXPECT_EQ(std::memcmp(again->data(), plan->data(), plan->size()), 0);
}

}  // namespace
}  // namespace nvinfer1
