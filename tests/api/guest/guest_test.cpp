// SPDX-License-Identifier: Apache-2.0
// Plans of this version in a library of a later one that does not read them: cmake/versions.cmake.
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <vector>

#include "api/guest/guest.h"
#include "api/small_engine.h"
#include "base/own_file.h"
#include "plan/compatibility.h"
#include "plan/header.h"

namespace nvinfer1 {
namespace {

using Bytes = std::span<const std::byte>;

Bytes bytes_of(const IHostMemory& plan) { return {static_cast<const std::byte*>(plan.data()), plan.size()}; }

size_t mapped_runtimes() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);)
    if (line.find("r-xp") != std::string::npos && line.find("lathe_lean") != std::string::npos)
      files.insert(line.substr(line.find('/')));
  return files.size();
}

class GuestRuntime : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    const std::string path = lathe::own_folder() + "/../lib/versions/later/liblathe.so.0";
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    later.reset(make_later());
    ASSERT_NE(later, nullptr);
  }
  IRuntime* make_later() {
    auto* const make = reinterpret_cast<void* (*)(void*, int32_t)>(dlsym(library_, "createInferRuntime_INTERNAL"));
    return make ? static_cast<IRuntime*>(make(&logger, NV_TENSORRT_VERSION)) : nullptr;
  }
  std::unique_ptr<IHostMemory> build_compatible() {
    config->setFlag(BuilderFlag::kVERSION_COMPATIBLE);
    return build();
  }
  std::unique_ptr<ICudaEngine> load_by(IRuntime& by, const IHostMemory& plan) {
    return std::unique_ptr<ICudaEngine>(by.deserializeCudaEngine(plan.data(), plan.size()));
  }
  // y of an engine that is loaded in whatever way.
  static std::vector<float> answer(ICudaEngine& engine) {
    const std::unique_ptr<IExecutionContext> context(engine.createExecutionContext());
    std::vector<float> x = {1, 2, 3, -4, 5, 6}, y(4);
    EXPECT_TRUE(context && context->setInputShape("x", Dims2(2, 3)) && context->setTensorAddress("x", x.data()) &&
                context->setTensorAddress("y", y.data()) && context->enqueueV3(nullptr));
    return y;
  }

  std::unique_ptr<IRuntime> later;

 private:
  void* library_ = nullptr;  // stays
};

// S10, S18.
TEST_F(GuestRuntime, TheFlagIsForPlans) {
  config->setFlag(BuilderFlag::kVERSION_COMPATIBLE);
  const std::unique_ptr<ICudaEngine> none(builder->buildEngineWithConfig(*network, *config));
  EXPECT_EQ(none, nullptr);
  EXPECT_NE(logger.last().find("buildSerializedNetwork()"), std::string::npos) << logger.last();
  logger.text.clear();
  logger.most = ILogger::Severity::kWARNING;
  config->clearFlag(BuilderFlag::kVERSION_COMPATIBLE);
  config->setFlag(BuilderFlag::kEXCLUDE_LEAN_RUNTIME);
  const std::unique_ptr<IHostMemory> plan = build();
  EXPECT_EQ(lathe::plan::read_header(bytes_of(*plan))->compatibility, lathe::plan::Compatibility::same_version);
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.text[0].find("kEXCLUDE_LEAN_RUNTIME has no effect"), std::string::npos);
}

// S12, S13, S17: of several plans one mapping.
TEST_F(GuestRuntime, PlansShareTheirRuntime) {
  const std::unique_ptr<IHostMemory> plan = build_compatible();
  const size_t before = mapped_runtimes();
  later->setEngineHostCodeAllowed(true);
  const std::unique_ptr<IRuntime> other(make_later());
  other->setEngineHostCodeAllowed(true);
  runtime->setEngineHostCodeAllowed(true);
  std::vector<std::unique_ptr<ICudaEngine>> engines;
  engines.push_back(load(*plan));  // needs no other runtime
  for (int i = 0; i < 4; ++i) engines.push_back(load_by(i < 2 ? *later : *other, *plan));
  for (const auto& engine : engines) ASSERT_NE(engine, nullptr) << logger.last();
  EXPECT_EQ(mapped_runtimes(), before + 1);
  for (const auto& engine : engines) EXPECT_EQ(answer(*engine), answer(*engines[0]));
  later.reset();
  engines.resize(2);
  EXPECT_EQ(answer(*engines[1]), answer(*engines[0]));
  EXPECT_EQ(mapped_runtimes(), before + 1);
  engines.pop_back();
  EXPECT_EQ(mapped_runtimes(), before + 1) << "the other runtime may load more";
}

// A runtime's own guests are nothing that the application has left.
TEST_F(GuestRuntime, EndsWithoutAWarningBehindItsEngines) {
  const std::unique_ptr<IHostMemory> plan = build_compatible();
  later->setEngineHostCodeAllowed(true);
  std::unique_ptr<ICudaEngine> engine = load_by(*later, *plan);
  ASSERT_NE(engine, nullptr) << logger.last();
  logger.text.clear();
  logger.most = ILogger::Severity::kWARNING;
  engine.reset();
  later.reset();
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// S15: false at first, of one runtime, and of what is loaded later.
TEST_F(GuestRuntime, LeaveIsOfOneRuntimeAndOfLaterEngines) {
  const std::unique_ptr<IHostMemory> plan = build_compatible();
  EXPECT_FALSE(later->getEngineHostCodeAllowed());
  EXPECT_EQ(load_by(*later, *plan), nullptr);
  EXPECT_NE(logger.last().find("LATHE-4006"), std::string::npos) << logger.last();
  later->setEngineHostCodeAllowed(true);
  EXPECT_TRUE(later->getEngineHostCodeAllowed());
  const std::unique_ptr<ICudaEngine> engine = load_by(*later, *plan);
  ASSERT_NE(engine, nullptr) << logger.last();
  later->setEngineHostCodeAllowed(false);
  EXPECT_EQ(load_by(*later, *plan), nullptr);
  EXPECT_EQ(answer(*engine).size(), 4u);
  const std::unique_ptr<IRuntime> other(make_later());
  EXPECT_EQ(load_by(*other, *plan), nullptr);
}

// S18: an engine gives its plan without the runtime, too, by whatever library it was loaded.
TEST_F(GuestRuntime, EnginesGiveTheirPlanWithoutIt) {
  const std::unique_ptr<IHostMemory> plan = build_compatible();
  later->setEngineHostCodeAllowed(true);
  const std::unique_ptr<ICudaEngine> engine = load_by(*later, *plan);
  ASSERT_NE(engine, nullptr) << logger.last();
  const std::unique_ptr<IHostMemory> whole(engine->serialize());
  ASSERT_NE(whole, nullptr);
  EXPECT_TRUE(std::ranges::equal(bytes_of(*whole), bytes_of(*plan)));
  const std::unique_ptr<ISerializationConfig> without(engine->createSerializationConfig());
  ASSERT_TRUE(without && without->setFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME));
  const std::unique_ptr<IHostMemory> bare(engine->serializeWithConfig(*without));
  ASSERT_NE(bare, nullptr);
  EXPECT_FALSE(lathe::plan::holds_host_code(*lathe::plan::read_header(bytes_of(*bare))));
  config->setFlag(BuilderFlag::kEXCLUDE_LEAN_RUNTIME);
  const std::unique_ptr<IHostMemory> built = build();
  EXPECT_TRUE(std::ranges::equal(bytes_of(*bare), bytes_of(*built)));
}

// An engine whose weights can be replaced writes its plan anew, and leaves nothing of this out.
TEST_F(GuestRuntime, RefittableEnginesKeepIt) {
  config->setFlag(BuilderFlag::kREFIT);
  const std::unique_ptr<IHostMemory> plan = build_compatible();
  runtime->setEngineHostCodeAllowed(true);
  const std::unique_ptr<ICudaEngine> engine = load(*plan);
  ASSERT_NE(engine, nullptr) << logger.last();
  const std::unique_ptr<ISerializationConfig> settings(engine->createSerializationConfig());
  ASSERT_TRUE(settings->setFlag(SerializationFlag::kINCLUDE_REFIT));
  const std::unique_ptr<IHostMemory> again(engine->serializeWithConfig(*settings));
  ASSERT_NE(again, nullptr) << logger.last();
  const auto before = lathe::plan::read_header(bytes_of(*plan)), after = lathe::plan::read_header(bytes_of(*again));
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->compatibility, lathe::plan::Compatibility::later_versions);
  EXPECT_EQ(after->record_format, before->record_format);
  const auto* const runtime_section = after->find(lathe::plan::kLeanRuntime);
  ASSERT_NE(runtime_section, nullptr);
  EXPECT_EQ(runtime_section->digest, before->find(lathe::plan::kLeanRuntime)->digest);
}

// S20: what the older runtime reports, the recorder of the newer one gets, also one that came later.
TEST_F(GuestRuntime, ErrorsGoToTheRecorderOfTheLoadingRuntime) {
  struct Recorder : IErrorRecorder {
    int32_t getNbErrors() const noexcept override { return count; }
    ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kSUCCESS; }
    ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { count = 0; }
    bool reportError(ErrorCode, ErrorDesc) noexcept override { return ++count, true; }
    RefCount incRefCount() noexcept override { return ++references; }
    RefCount decRefCount() noexcept override { return --references; }
    int32_t count = 0;
    RefCount references = 0;
  };
  Recorder first, second;
  const std::unique_ptr<IHostMemory> plan = build_compatible();
  later->setEngineHostCodeAllowed(true);
  later->setErrorRecorder(&first);
  std::unique_ptr<ICudaEngine> engine = load_by(*later, *plan);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->getTensorIOMode("nothing"), TensorIOMode::kNONE);
  EXPECT_EQ(first.count, 1);
  later->setErrorRecorder(&second);
  EXPECT_EQ(engine->getTensorIOMode("nothing"), TensorIOMode::kNONE);
  EXPECT_EQ(first.count, 1);
  EXPECT_EQ(second.count, 1);
  later.reset();
  engine.reset();
  EXPECT_EQ(first.references, 0);
  EXPECT_EQ(second.references, 0);
}

// What lathe.h adds is for this library's own objects.
TEST_F(GuestRuntime, ExtensionsRefuseItsObjects) {
  EXPECT_FALSE(lathe::setCpuThreads(*later, 1));
  EXPECT_NE(std::string(lathe::lastError()).find("another version"), std::string::npos);
  EXPECT_EQ(lathe::loadEngineFile(*later, "plan"), nullptr);
  const std::unique_ptr<IHostMemory> plan = build_compatible();
  later->setEngineHostCodeAllowed(true);
  runtime->setEngineHostCodeAllowed(true);
  const std::unique_ptr<ICudaEngine> engine = load_by(*later, *plan), own = load(*plan);
  ASSERT_TRUE(engine && own);
  const std::unique_ptr<IRuntimeConfig> settings(engine->createRuntimeConfig());
  EXPECT_FALSE(lathe::setCpuThreads(*settings, 1));
  EXPECT_EQ(std::unique_ptr<IExecutionContext>(own->createExecutionContext(settings.get())), nullptr);
  EXPECT_NE(std::unique_ptr<IExecutionContext>(engine->createExecutionContext(settings.get())), nullptr);
}

// S26.
TEST_F(GuestRuntime, TemporaryFoldersAreChecked) {
  EXPECT_EQ(runtime->getTemporaryDirectory(), nullptr);
  runtime->setTemporaryDirectory("/tmp");
  EXPECT_STREQ(runtime->getTemporaryDirectory(), "/tmp");
  runtime->setTemporaryDirectory("/no/such/folder");
  EXPECT_NE(logger.last().find("'/no/such/folder'"), std::string::npos) << logger.last();
  EXPECT_STREQ(runtime->getTemporaryDirectory(), "/tmp");
  runtime->setTemporaryDirectory(nullptr);
  EXPECT_EQ(runtime->getTemporaryDirectory(), nullptr);
}

}  // namespace
}  // namespace nvinfer1
