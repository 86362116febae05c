// SPDX-License-Identifier: Apache-2.0
// What the interfaces that applications implement bring along: names, versions, and defaults of what need not be
// overridden.
#include <cstdlib>

#include "api/small_engine.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1 {
namespace {

struct Malloc : IGpuAllocator {
  void* allocate(const uint64_t size, const uint64_t, const AllocatorFlags) noexcept override {
    return ++live, std::malloc(size);
  }
  bool deallocate(void* const memory) noexcept override { return --live, std::free(memory), true; }
  int live = 0;
};

struct AsyncMalloc : IGpuAsyncAllocator {
  void* allocateAsync(const uint64_t size, const uint64_t, const AllocatorFlags, cudaStream_t s) noexcept override {
    stream = s;
    return ++live, std::malloc(size);
  }
  bool deallocateAsync(void* const memory, cudaStream_t s) noexcept override {
    stream = s;
    return --live, std::free(memory), true;
  }
  int live = 0;
  cudaStream_t stream = nullptr;
};

struct Outputs : IOutputAllocator {
  void notifyShape(const char*, const Dims&) noexcept override {}
};
struct OldOutputs : Outputs {
  void* reallocateOutput(const char*, void* current, uint64_t, uint64_t) noexcept override { return current; }
};
struct Times : IProfiler {
  void reportLayerTime(const char*, float) noexcept override {}
};
struct Monitor : IProgressMonitor {
  void phaseStart(const char*, const char*, int32_t) noexcept override {}
  bool stepComplete(const char*, int32_t) noexcept override { return true; }
  void phaseFinish(const char*) noexcept override {}
};
struct Reader : IStreamReaderV2 {
  int64_t read(void*, int64_t, cudaStream_t) noexcept override { return 0; }
  bool seek(int64_t, SeekPosition) noexcept override { return false; }
};
struct Writer : IStreamWriter {
  int64_t write(const void*, int64_t size) override { return size; }
};
struct Listener : IDebugListener {
  bool processDebugTensor(const void*, TensorLocation, DataType, const Dims&, const char*, cudaStream_t) override {
    return true;
  }
};
struct Finder : ILoggerFinder {
  ILogger* findLogger() override { return nullptr; }
};
struct Recorder : IErrorRecorder {
  int32_t getNbErrors() const noexcept override { return 0; }
  ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kSUCCESS; }
  ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override {}
  bool reportError(ErrorCode, ErrorDesc) noexcept override { return true; }
  RefCount incRefCount() noexcept override { return 1; }
  RefCount decRefCount() noexcept override { return 0; }
};

TEST(Interfaces, SayTheirNamesAndVersions) {
  const auto is = [](const auto& object, const char* kind) {
    EXPECT_STREQ(object.getInterfaceInfo().kind, kind);
    EXPECT_EQ(object.getInterfaceInfo().major, 1) << kind;
    EXPECT_EQ(object.getInterfaceInfo().minor, 0) << kind;
    EXPECT_EQ(static_cast<const IVersionedInterface&>(object).getAPILanguage(), APILanguage::kCPP) << kind;
    EXPECT_STREQ(static_cast<const IVersionedInterface&>(object).getInterfaceInfo().kind, kind);
  };
  is(Malloc(), "IGpuAllocator");
  is(AsyncMalloc(), "IGpuAllocator");
  is(Outputs(), "IOutputAllocator");
  is(Times(), "IProfiler");
  is(Monitor(), "IProgressMonitor");
  is(Reader(), "IStreamReaderV2");
  is(Writer(), "IStreamWriter");
  is(Listener(), "IDebugListener");
  is(Finder(), "ILoggerFinder");
  is(Recorder(), "IErrorRecorder");
  is(Errors(), "ILogger");
}

TEST(Interfaces, AsynchronousMemoryIsSynchronousByDefault) {
  Malloc allocator;
  void* memory = allocator.allocateAsync(64, 0, 0, nullptr);
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(allocator.live, 1);
  EXPECT_EQ(allocator.reallocate(memory, 0, 128), nullptr) << "growing is an offer of some allocators";
  EXPECT_TRUE(allocator.deallocateAsync(memory, nullptr));
  EXPECT_EQ(allocator.live, 0);
}

TEST(Interfaces, AnAsynchronousAllocatorServesOldCallersInTheDefaultStream) {
  AsyncMalloc allocator;
  allocator.stream = reinterpret_cast<cudaStream_t>(&allocator);
  void* memory = allocator.allocate(64, 0, 0);
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(allocator.stream, nullptr);
  EXPECT_EQ(allocator.live, 1);
  allocator.stream = reinterpret_cast<cudaStream_t>(&allocator);
  EXPECT_TRUE(allocator.deallocate(memory));
  EXPECT_EQ(allocator.stream, nullptr);
  EXPECT_EQ(allocator.live, 0);
}

TEST(Interfaces, OutputsAreNotGrownByDefault) {
  float y = 0;
  EXPECT_EQ(Outputs().reallocateOutput("y", &y, 8, 4), nullptr);
  EXPECT_EQ(Outputs().reallocateOutputAsync("y", &y, 8, 4, nullptr), nullptr);
  EXPECT_EQ(OldOutputs().reallocateOutputAsync("y", &y, 4, 4, nullptr), &y);
}

class Refitters : public EngineTest {
 protected:
  // The only report, of an answer that says no.
  void expect_report(const char* word) {
    ASSERT_EQ(logger.text.size(), 1u);
    EXPECT_NE(logger.last().find("LATHE-"), std::string::npos) << logger.last();
    EXPECT_NE(logger.last().find(word), std::string::npos) << logger.last();
    logger.text.clear();
  }
};

TEST_F(Refitters, OfAnEngineWithoutRefittableWeightsNameNoneAndRefuse) {
  const auto engine = load(*build());
  ASSERT_NE(engine, nullptr);
  EXPECT_FALSE(engine->isRefittable());
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  ASSERT_NE(refitter, nullptr);
  EXPECT_EQ(refitter->getLogger(), &logger);
  const char* name = "unchanged";
  WeightsRole role = WeightsRole::kKERNEL;
  EXPECT_EQ(refitter->getAll(1, &name, &role), 0);
  EXPECT_EQ(refitter->getMissing(1, &name, &role), 0);
  EXPECT_EQ(refitter->getAllWeights(1, &name), 0);
  EXPECT_EQ(refitter->getMissingWeights(1, &name), 0);
  EXPECT_STREQ(name, "unchanged");
  EXPECT_TRUE(logger.text.empty());
  EXPECT_FALSE(refitter->refitCudaEngine());
  expect_report("kREFIT");
  EXPECT_FALSE(refitter->refitCudaEngineAsync(nullptr));
  expect_report("kREFIT");
  EXPECT_EQ(refitter->getNamedWeights("w").values, nullptr);
  expect_report("kREFIT");
  EXPECT_EQ(refitter->getWeightsPrototype("w").count, -1);
  expect_report("kREFIT");
  EXPECT_EQ(refitter->getWeightsLocation("w"), TensorLocation::kHOST);
  expect_report("kREFIT");
}

using Builders = EngineTest;

TEST_F(Builders, AreKnownToTheirNetworks) { EXPECT_EQ(&network->getBuilder(), builder.get()); }

TEST_F(Builders, MeasureAsOftenAsTheyAreTold) {
  config->setAvgTimingIterations(3);
  EXPECT_EQ(config->getAvgTimingIterations(), 3);
}

}  // namespace
}  // namespace nvinfer1
