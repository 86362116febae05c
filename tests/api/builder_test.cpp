// SPDX-License-Identifier: Apache-2.0
// What a builder and its configuration are at first, what they become, and that reset() makes them what they were.
#include "api/small_engine.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1 {
namespace {

class BuilderQueries : public EngineTest {};

TEST_F(BuilderQueries, TellsWhatItHas) {
  EXPECT_EQ(builder->getLogger(), &logger);
  EXPECT_EQ(builder->getNbDLACores(), 0);
  EXPECT_EQ(builder->getMaxDLABatchSize(), 0);
  IPluginRegistry& own = builder->getPluginRegistry();
  EXPECT_NE(&own, ::getPluginRegistry());
  EXPECT_EQ(&own, &builder->getPluginRegistry());
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

TEST_F(BuilderQueries, ResetMakesABuilderWhatItWas) {
  struct : IErrorRecorder {
    int32_t getNbErrors() const noexcept override { return 0; }
    ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kSUCCESS; }
    ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override {}
    bool reportError(ErrorCode, ErrorDesc) noexcept override { return false; }
    RefCount incRefCount() noexcept override { return ++references; }
    RefCount decRefCount() noexcept override { return --references; }
    int references = 0;
  } recorder;
  const int32_t threads = builder->getMaxThreads();
  EXPECT_GE(threads, 1);
  EXPECT_TRUE(builder->setMaxThreads(threads + 3));
  EXPECT_EQ(builder->getMaxThreads(), threads + 3);
  builder->setErrorRecorder(&recorder);
  EXPECT_EQ(builder->getErrorRecorder(), &recorder);
  EXPECT_EQ(recorder.references, 1);
  builder->reset();
  EXPECT_EQ(builder->getMaxThreads(), threads);
  EXPECT_EQ(builder->getErrorRecorder(), nullptr);
  EXPECT_EQ(recorder.references, 0);
}

struct Writer : IStreamWriter {
  int64_t write(const void* data, int64_t size) override {
    if (room == 0) return -1;
    const int64_t taken = std::min(size, room);
    const auto* bytes = static_cast<const char*>(data);
    taken_bytes.insert(taken_bytes.end(), bytes, bytes + taken);
    if (room != INT64_MAX) room -= taken;
    return taken;
  }
  int64_t room = INT64_MAX;
  std::vector<char> taken_bytes;
};

TEST_F(BuilderQueries, APlanGoesToAStream) {
  const auto plan = build();
  Writer writer;
  ASSERT_TRUE(builder->buildSerializedNetworkToStream(*network, *config, writer)) << logger.last();
  ASSERT_EQ(writer.taken_bytes.size(), plan->size());
  EXPECT_EQ(std::memcmp(writer.taken_bytes.data(), plan->data(), plan->size()), 0);
}

TEST_F(BuilderQueries, AStreamThatIsFullIsReported) {
  for (const int64_t room : {0, 100}) {
    Writer writer;
    writer.room = room;
    logger.text.clear();
    EXPECT_FALSE(builder->buildSerializedNetworkToStream(*network, *config, writer));
    ASSERT_EQ(logger.text.size(), 1u);
    EXPECT_NE(logger.last().find("IBuilder::buildSerializedNetworkToStream"), std::string::npos) << logger.last();
  }
}

TEST_F(BuilderQueries, AConfigurationKeepsWhatIsSetUntilItIsReset) {
  const std::unique_ptr<IBuilderConfig> fresh(builder->createBuilderConfig());
  config->setAvgTimingIterations(4);
  config->setBuilderOptimizationLevel(5);
  config->setFlag(BuilderFlag::kDISABLE_TIMING_CACHE);
  config->clearFlag(BuilderFlag::kTF32);
  config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 1 << 20);
  config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
  config->setMaxNbTactics(2);
  EXPECT_EQ(config->getAvgTimingIterations(), 4);
  EXPECT_EQ(config->getBuilderOptimizationLevel(), 5);
  EXPECT_TRUE(config->getFlag(BuilderFlag::kDISABLE_TIMING_CACHE));
  EXPECT_FALSE(config->getFlag(BuilderFlag::kTF32));
  EXPECT_EQ(config->getMemoryPoolLimit(MemoryPoolType::kWORKSPACE), size_t{1} << 20);
  EXPECT_EQ(config->getProfilingVerbosity(), ProfilingVerbosity::kDETAILED);
  EXPECT_EQ(config->getMaxNbTactics(), 2);
  EXPECT_EQ(config->getNbOptimizationProfiles(), 1);

  config->reset();
  EXPECT_EQ(config->getAvgTimingIterations(), fresh->getAvgTimingIterations());
  EXPECT_EQ(config->getBuilderOptimizationLevel(), fresh->getBuilderOptimizationLevel());
  EXPECT_EQ(config->getFlags(), fresh->getFlags());
  EXPECT_EQ(config->getMemoryPoolLimit(MemoryPoolType::kWORKSPACE),
            fresh->getMemoryPoolLimit(MemoryPoolType::kWORKSPACE));
  EXPECT_EQ(config->getProfilingVerbosity(), fresh->getProfilingVerbosity());
  EXPECT_EQ(config->getMaxNbTactics(), fresh->getMaxNbTactics());
  EXPECT_EQ(config->getNbOptimizationProfiles(), 0);
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

TEST_F(BuilderQueries, LayersRunOnTheDefaultDevice) {
  const ILayer* layer = network->getLayer(0);
  EXPECT_FALSE(config->canRunOnDLA(layer));
  EXPECT_EQ(config->getDeviceType(layer), DeviceType::kGPU);
  EXPECT_FALSE(config->isDeviceTypeSet(layer));
  config->setDeviceType(layer, DeviceType::kGPU);
  EXPECT_TRUE(config->isDeviceTypeSet(layer));
  config->resetDeviceType(layer);
  EXPECT_FALSE(config->isDeviceTypeSet(layer));
}

TEST_F(BuilderQueries, ThereIsOneBuildRoute) {
  EXPECT_STREQ(config->getBuildRoute(), "");
  EXPECT_STREQ(config->getAllBuildRoutes(), "[]");
  EXPECT_STREQ(config->getRemoteAutoTuningConfig(), "");
}

TEST_F(BuilderQueries, EnginesTellTheirSources) {
  const auto engine = load(*build());
  EXPECT_EQ(engine->getTacticSources(), config->getTacticSources());
  EXPECT_EQ(engine->getWeightStreamingAutomaticBudget(), 0);
  EXPECT_EQ(runtime->getNbDLACores(), 0);
  EXPECT_EQ(runtime->loadRuntime("/nowhere/libnvinfer_lean.so"), nullptr);
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.last().find("IRuntime::loadRuntime"), std::string::npos);
}

}  // namespace
}  // namespace nvinfer1
