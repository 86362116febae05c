// SPDX-License-Identifier: Apache-2.0
// Objects that one thread at a time may use: a call that comes while another thread is at work fails with one report,
// and the other thread's call goes on unharmed.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "source_dir.h"

namespace nvinfer1 {
namespace {

const std::string kDigits = lathe::source_path("/examples/digits/digits.onnx");

// Holds the call that it is part of until the test goes on, or runs `inside` there.
struct Pause {
  void here() {
    if (inside) inside();
    if (!holds) return;
    reached.count_down();
    resume.wait();
  }
  bool holds = false;
  std::function<void()> inside;
  std::latch reached{1}, resume{1};
};

struct PausingAllocator : IOutputAllocator {
  void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) override {
    pause.here();
    return memory;
  }
  void notifyShape(const char*, const Dims&) noexcept override {}
  Pause pause;
  alignas(256) float memory[16] = {};
};

struct PausingMonitor : IProgressMonitor {
  void phaseStart(const char*, const char*, int32_t) noexcept override {
    if (first.exchange(false)) pause.here();
  }
  bool stepComplete(const char*, int32_t) noexcept override { return true; }
  void phaseFinish(const char*) noexcept override {}
  std::atomic<bool> first{true};
  Pause pause;
};

class ExclusiveTest : public EngineTest {
 protected:
  // `call` fails, and says so once.
  template <class Call>
  void expect_refused(const char* name, Call&& call) {
    const size_t before = logger.text.size();
    const bool failed = call();
    expect_report(name, failed, before);
  }
  void expect_report(const char* name, bool failed, size_t before) const {  // compiled once, not for each call
    EXPECT_TRUE(failed) << name << " succeeded";
    ASSERT_EQ(logger.text.size(), before + 1) << name << ": " << logger.last();
    EXPECT_NE(logger.last().find("LATHE-9002"), std::string::npos) << name << ": " << logger.last();
  }
  void expect_untouched_config(const char* name, const std::function<bool()>& call) {
    const size_t before = logger.text.size();
    EXPECT_TRUE(call()) << name;
    EXPECT_EQ(logger.text.size(), before);  // Lathe's own settings tell lastError()
    EXPECT_NE(std::string(lathe::lastError()).find("LATHE-9002"), std::string::npos) << name << lathe::lastError();
  }

  std::unique_ptr<IExecutionContext> make_context(ICudaEngine& engine) {
    std::unique_ptr<IExecutionContext> context(engine.createExecutionContext());
    EXPECT_TRUE(context->setInputShape("x", Dims2(2, 3)));
    EXPECT_TRUE(context->setInputTensorAddress("x", x));
    return context;
  }

  // Every call on a context that can fail, made while it runs.
  void refuse_changes(IExecutionContext& context) {
    void* bindings[2] = {};
    const char* names[1] = {};
    EXPECT_NO_FATAL_FAILURE(expect_refused("enqueueV3", [&] { return !context.enqueueV3(nullptr); }));
    expect_refused("executeV2", [&] { return !context.executeV2(bindings); });
    expect_refused("setInputShape", [&] { return !context.setInputShape("x", Dims2(1, 3)); });
    expect_refused("setTensorAddress", [&] { return !context.setTensorAddress("x", nullptr); });
    expect_refused("setInputTensorAddress", [&] { return !context.setInputTensorAddress("x", nullptr); });
    expect_refused("setOutputTensorAddress", [&] { return !context.setOutputTensorAddress("y", nullptr); });
    expect_refused("setOutputAllocator", [&] { return !context.setOutputAllocator("y", nullptr); });
    expect_refused("setOptimizationProfileAsync", [&] { return !context.setOptimizationProfileAsync(0, nullptr); });
    expect_refused("inferShapes", [&] { return context.inferShapes(1, names) == -1; });
    expect_refused("setDeviceMemoryV2", [&] { return context.setDeviceMemoryV2(nullptr, 0), true; });
    expect_refused("setProfiler", [&] { return context.setProfiler(nullptr), true; });
    expect_refused("setName", [&] { return context.setName("other"), true; });
  }
  void refuse_looks(IExecutionContext& context) {
    expect_refused("getTensorShape", [&] { return context.getTensorShape("y").nbDims == -1; });
    expect_refused("getTensorStrides", [&] { return context.getTensorStrides("y").nbDims == -1; });
    expect_refused("getTensorAddress", [&] { return context.getTensorAddress("x") == nullptr; });
    expect_refused("getMaxOutputSize", [&] { return context.getMaxOutputSize("y") == -1; });
  }

  const float x[24] = {1, 2, 3, -4, 5, 6};  // room for the largest shape
  const std::vector<float> expected{4, 0, 2, 1};
};

// S146.
TEST_F(ExclusiveTest, AContextThatRunsRefusesOtherThreads) {
  const auto engine = load(*build());
  const auto context = make_context(*engine);
  PausingAllocator output;
  output.pause.holds = true;
  ASSERT_TRUE(context->setOutputAllocator("y", &output));
  bool ran = false;
  std::thread runner([&] { ran = context->enqueueV3(nullptr); });
  output.pause.reached.wait();
  refuse_changes(*context);
  refuse_looks(*context);
  output.pause.resume.count_down();
  runner.join();
  EXPECT_TRUE(ran);
  EXPECT_EQ(std::vector<float>(output.memory, output.memory + 4), expected);
  output.pause.holds = false;
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
}

TEST_F(ExclusiveTest, CallbacksMayLookAndNotChange) {
  const auto engine = load(*build());
  const auto context = make_context(*engine);
  PausingAllocator output;
  output.pause.inside = [&] {
    refuse_changes(*context);
    EXPECT_EQ(context->getTensorShape("y").d[0], 2);
    EXPECT_EQ(context->getTensorAddress("x"), x);
    EXPECT_EQ(context->getOutputAllocator("y"), &output);
  };
  ASSERT_TRUE(context->setOutputAllocator("y", &output));
  EXPECT_TRUE(context->enqueueV3(nullptr));
  EXPECT_EQ(std::vector<float>(output.memory, output.memory + 4), expected);
}

// S154, S155.
TEST_F(ExclusiveTest, ABuildHoldsBuilderNetworkAndConfiguration) {
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  ILayer* layer = network->getLayer(network->getNbLayers() - 1);
  auto* activation = static_cast<IActivationLayer*>(layer);
  ITensor* input = network->getInput(0);
  PausingMonitor monitor;
  monitor.pause.holds = true;
  config->setProgressMonitor(&monitor);
  std::unique_ptr<IHostMemory> plan;
  std::thread other([&] { plan.reset(builder->buildSerializedNetwork(*network, *config)); });
  monitor.pause.reached.wait();

  expect_refused("createOptimizationProfile", [&] { return !builder->createOptimizationProfile(); });
  expect_refused("createBuilderConfig", [&] { return !builder->createBuilderConfig(); });
  expect_refused("createNetworkV2", [&] { return !builder->createNetworkV2(0); });
  expect_refused("setMaxThreads", [&] { return !builder->setMaxThreads(2); });
  expect_refused("isNetworkSupported", [&] { return !builder->isNetworkSupported(*network, *config); });
  expect_refused("build", [&] { return !builder->buildSerializedNetwork(*network, *config); });
  expect_refused("buildEngine", [&] { return !builder->buildEngineWithConfig(*network, *config); });

  expect_refused("addInput", [&] { return !network->addInput("z", DataType::kFLOAT, Dims2(1, 1)); });
  expect_refused("addIdentity", [&] { return !network->addIdentity(*input); });
  expect_refused("markOutput", [&] { return network->markOutput(*input), true; });
  expect_refused("network.setName", [&] { return network->setName("other"), true; });
  expect_refused("getLayer", [&] { return !network->getLayer(0); });
  expect_refused("layer.setName", [&] { return layer->setName("other"), true; });
  expect_refused("layer.setInput", [&] { return layer->setInput(0, *input), true; });
  expect_refused("layer.getOutput", [&] { return !layer->getOutput(0); });
  expect_refused("setActivationType", [&] {
    activation->setActivationType(ActivationType::kTANH);
    return activation->getActivationType() == ActivationType::kRELU;
  });
  expect_refused("tensor.setName", [&] { return input->setName("other"), true; });
  expect_refused("tensor.setDimensions", [&] { return input->setDimensions(Dims2(1, 3)), true; });
  expect_refused("tensor.getDimensions", [&] { return input->getDimensions().nbDims == -1; });
  expect_refused("parse", [&] { return !parser->parseFromFile(kDigits.c_str(), 0); });

  expect_refused("addOptimizationProfile", [&] { return config->addOptimizationProfile(nullptr) == -1; });
  expect_refused("setTacticSources", [&] { return !config->setTacticSources(0); });
  expect_untouched_config("setTarget", [&] { return !lathe::setTarget(*config, "cpu-arm64"); });
  expect_untouched_config("setBuildBudget", [&] { return !lathe::setBuildBudget(*config, 7); });
  expect_untouched_config("setCpuThreads", [&] { return !lathe::setCpuThreads(*config, 3); });
  expect_untouched_config("networkText", [&] { return !lathe::networkText(*network); });
  expect_untouched_config("buildReportJson", [&] { return !lathe::buildReportJson(*builder); });

  monitor.pause.resume.count_down();
  other.join();
  ASSERT_NE(plan, nullptr);
  const auto context = make_context(*load(*plan));
  float y[4] = {};
  EXPECT_TRUE(context->setTensorAddress("y", y));
  EXPECT_TRUE(context->enqueueV3(nullptr));
  EXPECT_EQ(std::vector<float>(y, y + 4), expected);
}

constexpr int kThreads = 8;
constexpr int kRounds = 300;

// Runs `work(thread)` on several threads at once.
template <class Work>
void on_threads(Work&& work) {
  std::vector<std::thread> threads;
  std::latch start(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      work(t);
    });
  for (std::thread& thread : threads) thread.join();
}

// Says whether it was reported to after the last of its users had let go.
struct CountedRecorder : IErrorRecorder {
  int32_t getNbErrors() const noexcept override { return 0; }
  ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kSUCCESS; }
  ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override {}
  bool reportError(ErrorCode, ErrorDesc) noexcept override {
    for (int i = 0; i < 20; ++i) {
      late += references == 0;
      std::this_thread::yield();
    }
    ++reports;
    return true;
  }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  std::atomic<int> references = 0, late = 0, reports = 0;
};

TEST_F(ExclusiveTest, ThreadsThatExchangeAnErrorRecorder) {
  CountedRecorder recorder;
  on_threads([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      if (t < 2)
        runtime->setErrorRecorder(i % 2 ? nullptr : &recorder);
      else
        EXPECT_EQ(runtime->deserializeCudaEngine(nullptr, 0), nullptr);
    }
  });
  runtime->setErrorRecorder(nullptr);
  EXPECT_EQ(recorder.late, 0);
  EXPECT_EQ(recorder.references, 0);
  EXPECT_EQ(static_cast<size_t>(recorder.reports) + logger.text.size(), (kThreads - 2) * size_t{kRounds});
}

TEST_F(ExclusiveTest, ThreadsThatShareAProfile) {
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  for (const auto select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    ASSERT_TRUE(profile->setDimensions("a", select, Dims2(2, 3)));
  std::atomic<int> failed = 0;
  on_threads([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      if (t < 4)
        failed += !profile->setDimensions("a", OptProfileSelector::kOPT, Dims2(2, 3));
      else
        failed += !profile->isValid();
    }
  });
  EXPECT_EQ(logger.text.size(), static_cast<size_t>(failed.load())) << logger.last();
  EXPECT_TRUE(profile->isValid());
}

// S157.
TEST_F(ExclusiveTest, ThreadsThatSetUpARuntimeThatLoads) {
  const auto plan = build();
  on_threads([&](int t) {
    for (int i = 0; i < 20; ++i) {
      if (t == 0) {
        EXPECT_TRUE(lathe::setCpuThreads(*runtime, 1 + i % 2));
        lathe::setInspectionOnly(*runtime, i % 2 == 1);
      } else if (t < 3) {
        const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        EXPECT_NE(engine, nullptr);
      }
    }
  });
}

// Each call either does its work or fails with a report of its own.
// S152.
TEST_F(ExclusiveTest, ThreadsThatShareABuilder) {
  std::atomic<int> failed = 0;
  std::mutex mutex;
  std::vector<IOptimizationProfile*> profiles;
  on_threads([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      IOptimizationProfile* profile = builder->createOptimizationProfile();
      const std::unique_ptr<IBuilderConfig> other(builder->createBuilderConfig());
      failed += !profile + !other;
      const std::lock_guard lock(mutex);
      if (profile) profiles.push_back(profile);
    }
  });
  EXPECT_EQ(logger.text.size(), static_cast<size_t>(failed.load()));
  for (IOptimizationProfile* profile : profiles) EXPECT_TRUE(profile->isValid());
}

TEST_F(ExclusiveTest, ThreadsThatShareABuildersLastReport) {
  std::atomic<int> failed = 0;
  on_threads([&](int t) {
    for (int i = 0; i < 3; ++i) {
      if (t < 2)
        failed += std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config)) == nullptr;
      else
        delete lathe::buildReportJson(*builder);
    }
  });
  EXPECT_EQ(logger.text.size(), static_cast<size_t>(failed.load()));
  EXPECT_NE(build(), nullptr);
}

// S155.
TEST_F(ExclusiveTest, ThreadsThatShareANetwork) {
  std::atomic<int> failed = 0;
  on_threads([&](int) {
    for (int i = 0; i < kRounds / 10; ++i) {
      ITensor* input = network->getInput(0);
      failed += !input;
      if (!input) continue;
      ILayer* layer = network->addIdentity(*input);
      failed += !layer;
      if (layer) failed += layer->getOutput(0) == nullptr;
    }
  });
  EXPECT_EQ(logger.text.size(), static_cast<size_t>(failed.load()));
  EXPECT_NE(build(), nullptr);
}

// S146.
TEST_F(ExclusiveTest, ThreadsThatShareAContext) {
  const auto engine = load(*build());
  const auto context = make_context(*engine);
  float y[16] = {};
  ASSERT_TRUE(context->setTensorAddress("y", y));
  std::atomic<int> failed = 0, ran = 0;
  on_threads([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      failed += !context->setInputShape("x", Dims2(1 + (t + i) % 8, 3));
      const bool done = context->enqueueV3(nullptr);
      failed += !done;
      ran += done;
    }
  });
  EXPECT_GT(ran, 0);
  EXPECT_EQ(logger.text.size(), static_cast<size_t>(failed.load())) << logger.last();
  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  ASSERT_TRUE(context->enqueueV3(nullptr));
  EXPECT_EQ(std::vector<float>(y, y + 4), expected);
}

}  // namespace
}  // namespace nvinfer1
