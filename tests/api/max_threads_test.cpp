// SPDX-License-Identifier: Apache-2.0
// Builders, refitters and runtimes start no more threads than setMaxThreads() allows, the calling one included, and use
// those that they may.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "api/small_engine.h"
#include "base/processors.h"
#include "sanitized.h"

namespace {

struct Started {
  void* (*run)(void*);
  void* argument;
};
std::atomic<int> made{0}, alive{0}, most_alive{0};  // threads that were started here

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which have one of their own
namespace {

void* run_counted(void* given) {
  const std::unique_ptr<Started> started(static_cast<Started*>(given));
  void* const result = started->run(started->argument);
  --alive;
  return result;
}

}  // namespace

// In place of the system's, for all of the process.
extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                             void* (*run)(void*), void* argument) noexcept {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  ++made;
  int most = most_alive;
  for (const int now = ++alive; now > most && !most_alive.compare_exchange_weak(most, now);) continue;
  std::unique_ptr<Started> started(new Started{run, argument});
  const int failed = real(thread, attributes, run_counted, started.get());
  failed ? void(--alive) : void(started.release());
  return failed;
}
#endif

namespace nvinfer1 {
namespace {

class MaxThreads : public EngineTest {
 protected:
  void SetUp() override {
    if (kIsSanitized) GTEST_SKIP() << "threads are the sanitizer's to start";
    if (on_gpu()) GTEST_SKIP() << "its driver has threads of its own";
    EngineTest::SetUp();
    ASSERT_TRUE(lathe::setCpuThreads(*config, 1) && lathe::setCpuThreads(*runtime, 1));
  }
  // Starts threads, and of them at most so many live at one time.
  template <class Work>
  static void expect_threads(int most, Work&& work) {
    const int made_before = made, alive_before = alive;
    most_alive = alive_before;
    work();
    EXPECT_EQ(made > made_before, most > 0) << most;
    EXPECT_LE(most_alive - alive_before, most);
  }
};

TEST_F(MaxThreads, OfBuilders) {
  for (int i = 0; i < 4; ++i) {  // of which the results of the fastest candidates are checked
    ITensor* x = network->addInput(("x" + std::to_string(i)).c_str(), DataType::kFLOAT, Dims2(4, 8 + i));
    network->markOutput(*network->addSoftMax(*x)->getOutput(0));
  }
  lathe::setBuildBudget(*config, 60);
  const int cores = lathe::allowed_cpus();
  for (const int most : {1, 2, 3}) {
    ASSERT_TRUE(builder->setMaxThreads(most));
    expect_threads(std::min(most, cores) - 1, [&] { build(); });
  }
}

// A runtime makes the kernels of several layers.
TEST_F(MaxThreads, OfRuntimes) {
  for (int i = 0; i < 4; ++i) {
    ITensor* x = network->addInput(("x" + std::to_string(i)).c_str(), DataType::kFLOAT, Dims2(4, 8 + i));
    network->markOutput(*network->addSoftMax(*x)->getOutput(0));
  }
  const auto plan = build();
  EXPECT_EQ(runtime->getMaxThreads(), 1);
  expect_threads(0, [&] { engine = load(*plan); });
  for (const int most : {1, 2, 3}) {
    ASSERT_TRUE(runtime->setMaxThreads(most));
    EXPECT_EQ(runtime->getMaxThreads(), most);
    expect_threads(most - 1, [&] { engine = load(*plan); });
    ASSERT_NE(engine, nullptr);
    EXPECT_NE(std::unique_ptr<IExecutionContext>(engine->createExecutionContext()), nullptr);
  }
}

// Weights of three pieces are checked; one kernel is made, by one thread.
TEST_F(MaxThreads, OfChecksOfWeights) {
  const std::vector<float> values(2'200'000, 1);
  const auto count = static_cast<int64_t>(values.size());
  ITensor* x = network->addInput("large", DataType::kFLOAT, Dims2(1, count));
  ITensor* w = network->addConstant(Dims2(1, count), {DataType::kFLOAT, values.data(), count})->getOutput(0);
  network->markOutput(*network->addElementWise(*x, *w, ElementWiseOperation::kSUM)->getOutput(0));
  const auto plan = build();
  expect_threads(0, [&] { engine = load(*plan); });
  ASSERT_NE(engine, nullptr);
  ASSERT_TRUE(runtime->setMaxThreads(3));
  expect_threads(2, [&] { engine = load(*plan); });
  ASSERT_NE(engine, nullptr);
}

TEST_F(MaxThreads, OfRefitters) {
  config->setFlag(BuilderFlag::kREFIT);
  network->getLayer(0)->setName("w");
  network->getLayer(2)->setName("b");
  const auto plan = build();
  expect_threads(0, [&] { engine = load(*plan); });
  ASSERT_NE(engine, nullptr);
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  for (const int most : {1, 2}) {
    ASSERT_TRUE(refitter->setMaxThreads(most));
    ASSERT_TRUE(refitter->setWeights("w", WeightsRole::kCONSTANT, {DataType::kFLOAT, w, 6}) &&
                refitter->setWeights("b", WeightsRole::kCONSTANT, {DataType::kFLOAT, b, 2}))
        << logger.last();
    expect_threads(most - 1, [&] { EXPECT_TRUE(refitter->refitCudaEngine()) << logger.last(); });
  }
}

}  // namespace
}  // namespace nvinfer1
