// SPDX-License-Identifier: Apache-2.0
// Kernels that are compiled when an engine is set up, kept in runtime caches, on the stand-in driver.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "device/cuda/hardware_fixture.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;
using Config = std::unique_ptr<nv::IRuntimeConfig>;
using Cache = std::unique_ptr<nv::IRuntimeCache>;
using Context = std::unique_ptr<nv::IExecutionContext>;

// How often the driver has compiled PTX.
size_t compilations() {
  size_t count = 0;
  for (size_t i = 0; i < fake_cuda_calls(); ++i) count += std::string_view(fake_cuda_call(i)) == "cuLinkComplete";
  return count;
}

struct AllLog final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) errors.emplace_back(message);
    // That of the fixture's, whose runtime is gone when the engine runs, is not of the cache.
    if (severity == Severity::kWARNING && !std::string_view(message).starts_with("IRuntime is deleted"))
      warnings.emplace_back(message);
    lines.emplace_back(message);
  }
  // Where the line that has these words is; -1: nowhere.
  int find(std::string_view words) const {
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].find(words) != std::string::npos) return static_cast<int>(i);
    return -1;
  }
  std::vector<std::string> errors, warnings, lines;
};

class RuntimeCacheTest : public HardwareTest {
 protected:
  void SetUp() override {
    HardwareTest::SetUp();
    char name[] = "/tmp/lathe_runtime_cache_XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = (folder_ / "kernels.cache").string();
    change_to(gpu("H100 PCIe"));
    plan_ = build(HardwareCompatibilityLevel::kAMPERE_PLUS);
    ASSERT_NE(plan_, nullptr) << log_.error;
    change_to(gpu("A10"));
  }
  void TearDown() override {
    fs::remove_all(folder_);
    HardwareTest::TearDown();
  }

  Engine load_engine(AllLog& log, const char* path = nullptr, int64_t most_bytes = 0) {
    const std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(log));
    EXPECT_TRUE(setRuntimeCacheFile(*runtime, path, most_bytes));
    return Engine(runtime->deserializeCudaEngine(plan_->data(), plan_->size()));
  }
  // What a second process would start with.
  static void start_again() { releaseIdleDevices(); }

  fs::path folder_;
  std::string path_;
  Plan plan_;
};

// S187, S224: a cache that comes from an earlier start has all kernels.
TEST_F(RuntimeCacheTest, ASecondStartCompilesNothing) {
  std::vector<std::byte> kept;
  for (const bool is_first : {true, false}) {
    AllLog log;
    const size_t before = compilations();
    const Engine engine = load_engine(log);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(compilations(), before) << "kernels are compiled for contexts";
    const Config config(engine->createRuntimeConfig());
    EXPECT_EQ(config->getRuntimeCache(), nullptr);
    const Cache cache(config->createRuntimeCache());
    EXPECT_EQ(cache->deserialize(kept.data(), kept.size()), !is_first);  // nothing is no cache
    EXPECT_TRUE(config->setRuntimeCache(*cache));
    EXPECT_EQ(config->getRuntimeCache(), cache.get());
    const Context context(engine->createExecutionContext(config.get()));
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(compilations() > before, is_first);
    expect_right(*engine);
    const std::unique_ptr<nv::IHostMemory> blob(cache->serialize()), json(runtimeCacheJson(*cache));
    const auto* const bytes = static_cast<const std::byte*>(blob->data());
    kept.assign(bytes, bytes + blob->size());
    const std::string text(static_cast<const char*>(json->data()), json->size());
    EXPECT_NE(text.find(is_first ? "\"hits\": 0" : "\"compiled\": 0"), std::string::npos) << text;
    EXPECT_NE(text.find("device=A10 sm_86"), std::string::npos) << text;
    start_again();
  }
}

// What the engine has compiled before it was given a cache goes there, too.
TEST_F(RuntimeCacheTest, TakesUpWhatIsThere) {
  AllLog log;
  const Engine engine = load_engine(log);
  ASSERT_NE(engine, nullptr);
  expect_right(*engine);
  const size_t before = compilations();
  const Config config(engine->createRuntimeConfig());
  const Cache cache(config->createRuntimeCache());
  const std::unique_ptr<nv::IHostMemory> empty(cache->serialize());
  config->setRuntimeCache(*cache);
  ASSERT_NE(Context(engine->createExecutionContext(config.get())), nullptr);
  EXPECT_EQ(compilations(), before);
  const std::unique_ptr<nv::IHostMemory> blob(cache->serialize());
  EXPECT_GT(blob->size(), empty->size());
  EXPECT_TRUE(cache->reset());
  const std::unique_ptr<nv::IHostMemory> again(cache->serialize());
  EXPECT_EQ(again->size(), empty->size());
  EXPECT_TRUE(setRuntimeCacheLimit(*cache, 0));
  EXPECT_FALSE(setRuntimeCacheLimit(*cache, -1));
}

TEST_F(RuntimeCacheTest, RefusesWhatIsOfAnotherGpu) {
  AllLog log;
  std::unique_ptr<nv::IHostMemory> blob;
  {
    const Engine engine = load_engine(log);
    const Config config(engine->createRuntimeConfig());
    const Cache cache(config->createRuntimeCache());
    config->setRuntimeCache(*cache);
    ASSERT_NE(Context(engine->createExecutionContext(config.get())), nullptr);
    blob.reset(cache->serialize());
    EXPECT_FALSE(cache->deserialize(nullptr, 0));
    EXPECT_FALSE(cache->deserialize(blob->data(), blob->size() - 1));
  }
  EXPECT_EQ(log.errors.size(), 2u);
  change_to(gpu("A40"));
  const Engine engine = load_engine(log);
  const Config config(engine->createRuntimeConfig());
  const Cache cache(config->createRuntimeCache());
  EXPECT_FALSE(cache->deserialize(blob->data(), blob->size()));
  ASSERT_EQ(log.errors.size(), 3u);
  for (const char* part : {"A10", "A40"}) EXPECT_NE(log.errors[2].find(part), std::string::npos) << log.errors[2];
}

// S224, S225: the file is read when the engine is loaded, and written when it goes.
TEST_F(RuntimeCacheTest, AFileIsKeptForTheNextStart) {
  for (const bool is_first : {true, false}) {
    AllLog log;
    const size_t before = compilations();
    Engine engine = load_engine(log, path_.c_str());
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(compilations() > before, is_first) << "all kernels are made while loading";
    const size_t loaded = compilations();
    expect_right(*engine);
    EXPECT_EQ(compilations(), loaded);
    engine.reset();
    EXPECT_TRUE(fs::exists(path_));
    EXPECT_TRUE(log.warnings.empty()) << log.warnings[0];
    EXPECT_EQ(log.find("' is loaded: ") >= 0, !is_first);
    EXPECT_EQ(log.find("' is saved: ") >= 0, is_first) << "nothing new is not saved";
    start_again();
  }
}

// S193: what was compiled is saved before a context is made, then come the settings, then the context.
TEST_F(RuntimeCacheTest, TheOrderOfEvents) {
  AllLog log;
  const Engine engine = load_engine(log, path_.c_str());
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(log.find("' is saved: "), -1);
  ASSERT_NE(Context(engine->createExecutionContext()), nullptr);
  const int saved = log.find("' is saved: "), settings = log.find("context settings: allocation strategy 0"),
            made = log.find("IExecutionContext creation");
  EXPECT_GE(saved, 0);
  EXPECT_GT(settings, saved);
  EXPECT_GT(made, settings);
}

// S225: whatever is wrong with the file, the engine runs, and says it once.
TEST_F(RuntimeCacheTest, FilesOfNoUseAreAWarning) {
  const std::string in_file = (folder_ / "file" / "kernels.cache").string();
  std::ofstream(folder_ / "file") << "text";
  std::ofstream(folder_ / "garbage") << "LATHERC1 garbage";
  for (const std::string& path : {in_file, (folder_ / "garbage").string()}) {
    AllLog log;
    Engine engine = load_engine(log, path.c_str());
    ASSERT_NE(engine, nullptr);
    expect_right(*engine);
    engine.reset();
    EXPECT_EQ(log.warnings.size(), 1u) << path;
    EXPECT_TRUE(log.errors.empty());
    start_again();
  }
}

// The whole of a run as a graph.
TEST_F(RuntimeCacheTest, GraphStrategies) {
  AllLog log;
  const Engine engine = load_engine(log);
  const Config config(engine->createRuntimeConfig());
  EXPECT_EQ(config->getCudaGraphStrategy(), nv::CudaGraphStrategy::kDISABLED);
  EXPECT_FALSE(config->setCudaGraphStrategy(static_cast<nv::CudaGraphStrategy>(2)));
  EXPECT_EQ(config->getCudaGraphStrategy(), nv::CudaGraphStrategy::kDISABLED);
  const std::shared_ptr<Device> device = *open_device(0);
  const DeviceMemory x = *device->allocate(kRows * kIn * sizeof(float)), y = *device->allocate(kRows * kOut * 4);
  for (const auto strategy : {nv::CudaGraphStrategy::kDISABLED, nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE}) {
    ASSERT_TRUE(config->setCudaGraphStrategy(strategy));
    const Context context(engine->createExecutionContext(config.get()));
    EXPECT_EQ(Config(context->getRuntimeConfig())->getCudaGraphStrategy(), strategy);
    context->setTensorAddress("x", x.data());
    context->setTensorAddress("y", y.data());
    const size_t wanted = strategy == nv::CudaGraphStrategy::kDISABLED ? 0 : 1;
    const auto run = [&] { return context->enqueueV3(nullptr); };
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(run());
    // A thread makes the graph, and a later run takes it.
    for (int i = 0; i < 1000 && fake_cuda_live("executable") != wanted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ASSERT_TRUE(run());
    }
    EXPECT_EQ(fake_cuda_live("executable"), wanted);
    EXPECT_FALSE(context->isStreamCapturable(nullptr)) << "the default stream cannot be";
    const auto stream = reinterpret_cast<cudaStream_t>(uintptr_t{1});
    EXPECT_TRUE(context->isStreamCapturable(stream));
  }
}

}  // namespace
}  // namespace lathe::cuda
