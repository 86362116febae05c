// SPDX-License-Identifier: Apache-2.0
// Promises of the interface that no larger test is about: severities, versions of interfaces, random numbers of
// contexts.
#include <algorithm>
#include <chrono>
#include <map>

#include "api/deprecation.h"
#include "api/report.h"
#include "api/small_engine.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1 {
namespace {

struct BySeverity : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    const std::lock_guard lock(mutex);
    lines[severity].emplace_back(message);
  }
  std::mutex mutex;
  std::map<Severity, std::vector<std::string>> lines;
};

class SmallPromises : public EngineTest {
 protected:
  // y = x + a random number from 0 to 1, x[4].
  std::unique_ptr<ICudaEngine> random_engine() {
    const std::unique_ptr<INetworkDefinition> random(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> settings(builder->createBuilderConfig());
    lathe::setBuildBudget(*settings, 0);
    const Dims dims{1, {4}};
    ITensor* x = random->addInput("x", DataType::kFLOAT, dims);
    ITensor* fill = random->addFill(dims, FillOperation::kRANDOM_UNIFORM, DataType::kFLOAT)->getOutput(0);
    ITensor* y = random->addElementWise(*x, *fill, ElementWiseOperation::kSUM)->getOutput(0);
    y->setName("y");
    random->markOutput(*y);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*random, *settings));
    EXPECT_NE(plan, nullptr) << logger.last();
    return load(*plan);
  }
  static std::vector<float> run(IExecutionContext& context) {
    alignas(256) const float x[4] = {};
    alignas(256) float y[4] = {-1, -1, -1, -1};
    EXPECT_TRUE(context.setTensorAddress("x", const_cast<float*>(x)) && context.setTensorAddress("y", y));
    EXPECT_TRUE(context.enqueueV3(nullptr)) << lathe::lastError();
    return {y, y + 4};
  }
};

// S75: errors, information and details come as such; nothing warns or breaks in a build that goes well.
TEST_F(SmallPromises, MessagesHaveTheirSeverity) {
  BySeverity all;
  const std::unique_ptr<IBuilder> own(createInferBuilder(all));
  const std::unique_ptr<INetworkDefinition> mine(own->createNetworkV2(0));
  const std::unique_ptr<IBuilderConfig> settings(own->createBuilderConfig());
  ITensor* x = mine->addInput("x", DataType::kFLOAT, Dims2(4, 4));
  mine->markOutput(*mine->addActivation(*x, ActivationType::kTANH)->getOutput(0));
  const std::unique_ptr<IHostMemory> plan(own->buildSerializedNetwork(*mine, *settings));
  ASSERT_NE(plan, nullptr);
  EXPECT_GT(all.lines[ILogger::Severity::kINFO].size(), 2u);
  EXPECT_GT(all.lines[ILogger::Severity::kVERBOSE].size(), 0u);
  EXPECT_EQ(all.lines.count(ILogger::Severity::kINTERNAL_ERROR), 0u);
  EXPECT_EQ(all.lines.count(ILogger::Severity::kERROR), 0u);
  EXPECT_EQ(all.lines.count(ILogger::Severity::kWARNING), 0u);
  settings->setPluginsToSerialize(nullptr, 0);
  settings->setFlag(BuilderFlag::kGPU_FALLBACK);  // has no effect
  EXPECT_EQ(all.lines[ILogger::Severity::kWARNING].size(), 1u);
  EXPECT_EQ(mine->getLayer(99), nullptr);
  EXPECT_EQ(all.lines[ILogger::Severity::kERROR].size(), 1u);
}

// S140: an engine whose build was allowed nothing runs as any other, and what is set afterwards changes nothing.
TEST_F(SmallPromises, LimitsOfBuildsAreOfBuilds) {
  config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 1 << 20);
  const auto plan = build();
  const auto engine = load(*plan);
  const int64_t before = engine->getDeviceMemorySizeV2();
  config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 0);
  EXPECT_EQ(engine->getDeviceMemorySizeV2(), before);
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  alignas(256) const float x[3] = {1, 2, 3};
  alignas(256) float y[2] = {};
  ASSERT_TRUE(context->setInputShape("x", Dims2(1, 3)) && context->setInputTensorAddress("x", x) &&
              context->setTensorAddress("y", y));
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(y[0], 4);
}

// S75: what nobody reads costs less than a hundredth of a build. As many lines as one writes are made without a reader.
TEST_F(SmallPromises, MessagesThatNobodyReadsCostLittle) {
  BySeverity all;
  const std::unique_ptr<IBuilder> own(createInferBuilder(all));
  const std::unique_ptr<INetworkDefinition> mine(own->createNetworkV2(0));
  const std::unique_ptr<IBuilderConfig> settings(own->createBuilderConfig());
  ITensor* x = mine->addInput("x", DataType::kFLOAT, Dims2(64, 64));
  for (int i = 0; i < 8; ++i)
    x = mine->addSoftMax(*mine->addUnary(*x, UnaryOperation::kEXP)->getOutput(0))->getOutput(0);
  mine->markOutput(*x);
  const auto begin = std::chrono::steady_clock::now();
  const std::unique_ptr<IHostMemory> plan(own->buildSerializedNetwork(*mine, *settings));
  const std::chrono::duration<double> build = std::chrono::steady_clock::now() - begin;
  ASSERT_NE(plan, nullptr);
  size_t lines = 0;
  for (const auto& [severity, texts] : all.lines) lines += texts.size();
  ASSERT_GT(lines, 10u);
  struct Deaf final : ILogger {
    void log(Severity, const char*) noexcept override {}
  } deaf;
  lathe::api::LoggerLog log(&deaf);
  std::chrono::duration<double> least = std::chrono::duration<double>::max();
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < lines; ++i)
      log.print(lathe::Severity::verbose, "'{}' takes {:.3f} us with {}", "a layer's name", 0.5, "a tactic's name");
    least = std::min<std::chrono::duration<double>>(least, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(least.count(), build.count() / 100) << lines << " lines";
}

// S9: a function that works and is deprecated says so once in a process.
TEST_F(SmallPromises, DeprecatedFunctionsWarnOnce) {
  BySeverity all;
  const std::unique_ptr<IBuilder> own(createInferBuilder(all));
  const std::unique_ptr<INetworkDefinition> mine(own->createNetworkV2(0));
  for (int i = 0; i < 2; ++i) {
    ITensor* x = mine->addInput(i == 0 ? "x" : "y", DataType::kFLOAT, Dims2(4, 4));
    EXPECT_NE(mine->addNonZero(*x), nullptr);  // which an earlier test may have called, too
  }
  std::vector<std::string>& warnings = all.lines[ILogger::Severity::kWARNING];
  EXPECT_LE(warnings.size(), 1u);
  warnings.clear();
  lathe::api::Deprecation deprecation("IThing::former", "latter()");
  const lathe::api::Reporter reporter(&all);
  for (int i = 0; i < 3; ++i) deprecation.tell(reporter);
  EXPECT_EQ(warnings, std::vector<std::string>{"IThing::former is deprecated: latter() replaces it"});
}

// S9.
TEST_F(SmallPromises, DeprecatedValuesWarnOnce) {
  const auto warnings_of_a_new_process = [] {
    BySeverity all;
    const std::unique_ptr<IBuilder> own(createInferBuilder(all));
    for (int i = 0; i < 2; ++i) {
      const std::unique_ptr<IBuilderConfig> mine(own->createBuilderConfig());
      mine->setFlag(BuilderFlag::kDIRECT_IO);
      if (!mine->getFlag(BuilderFlag::kDIRECT_IO)) std::_Exit(3);
      const std::unique_ptr<INetworkDefinition> empty(
          own->createNetworkV2(1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)));
    }
    for (const std::string& warning : all.lines[ILogger::Severity::kWARNING]) std::cerr << warning << '\n';
    std::_Exit(all.lines[ILogger::Severity::kWARNING].size() == 2 ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not warned yet
  EXPECT_EXIT(warnings_of_a_new_process(), testing::ExitedWithCode(0),
              "BuilderFlag::kDIRECT_IO is deprecated: ITensor::setAllowedFormats\\(\\) replaces it");
}

// S166, S167.
TEST_F(SmallPromises, RandomNumbersAreOfTheRun) {
  const auto engine = random_engine();
  ASSERT_NE(engine, nullptr);
  const std::unique_ptr<IExecutionContext> one(engine->createExecutionContext()), two(engine->createExecutionContext());
  const std::vector<float> first = run(*one), second = run(*one), other = run(*two);
  EXPECT_NE(first, second);
  EXPECT_NE(first, other);
  EXPECT_TRUE(std::all_of(first.begin(), first.end(), [](float value) { return 0 <= value && value <= 1; }));
  lathe::setRandomSeed(17);
  const std::vector<float> seeded = run(*one), next = run(*one), third = run(*one);
  EXPECT_NE(next, seeded);
  EXPECT_EQ(run(*two), seeded);  // whatever the other context has computed
  EXPECT_EQ(run(*two), next);
  const std::unique_ptr<IExecutionContext> fresh(engine->createExecutionContext());
  for (const std::vector<float>& each : {seeded, next, third}) EXPECT_EQ(run(*fresh), each);
  lathe::setRandomSeed(18);
  EXPECT_NE(run(*one), seeded);
  lathe::setRandomSeed(17);
  EXPECT_EQ(run(*one), seeded);
  lathe::setRandomSeed(0, /*seeded=*/false);
  EXPECT_NE(run(*one), run(*one));
}

TEST_F(SmallPromises, TimingCachesAreJoinedAndEmptied) {
  config->setFlag(BuilderFlag::kEDITABLE_TIMING_CACHE);
  lathe::setBuildBudget(*config, 1);
  const std::unique_ptr<ITimingCache> full(config->createTimingCache(nullptr, 0));
  ASSERT_TRUE(config->setTimingCache(*full, /*ignoreMismatch=*/false));
  ASSERT_NE(build(), nullptr);
  const int64_t keys = full->queryKeys(nullptr, 0);
  ASSERT_GT(keys, 0);
  const std::unique_ptr<ITimingCache> empty(config->createTimingCache(nullptr, 0));
  ASSERT_TRUE(empty->combine(*full, /*ignoreMismatch=*/false));
  ASSERT_EQ(empty->queryKeys(nullptr, 0), keys);
  std::vector<TimingCacheKey> theirs(static_cast<size_t>(keys));
  ASSERT_EQ(empty->queryKeys(theirs.data(), keys), keys);
  for (const TimingCacheKey& key : theirs) EXPECT_EQ(empty->query(key).tacticHash, full->query(key).tacticHash);
  ASSERT_TRUE(empty->combine(*full, /*ignoreMismatch=*/false));  // what is there stays once
  EXPECT_EQ(empty->queryKeys(nullptr, 0), keys);
  EXPECT_TRUE(full->reset());
  EXPECT_EQ(full->queryKeys(nullptr, 0), 0);
  EXPECT_EQ(empty->queryKeys(nullptr, 0), keys);
}

TEST_F(SmallPromises, NetworksKnowTheirBuilder) { EXPECT_EQ(&network->getBuilder(), builder.get()); }

}  // namespace
}  // namespace nvinfer1
