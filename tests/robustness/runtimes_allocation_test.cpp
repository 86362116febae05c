// SPDX-License-Identifier: Apache-2.0
// Every operator new of the runtime libraries may fail, from their runtime to the result, also in the library that
// liblathe_dispatch.so opens and in the one that a plan brings: one report, nothing lost, no crash.
#include <dlfcn.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

#include "lathe.h"
#include "robustness/allocation_sweep.h"
#include "robustness/count_errors.h"
#include "sanitized.h"

namespace nvinfer1 {
namespace {

constexpr const char* kOwn = LIBRARY_FOLDER;
constexpr const char* kLater = LIBRARY_FOLDER "/versions/later";  // reads no plans of this version

// A library stays mapped as long as a thread has an object of it, its last error, so each attempt has its own thread.
lathe::Attempt attempt_alone(long n, const std::function<bool()>& operation) {
  const long live = lathe::live_blocks;
  lathe::Attempt result;
  std::thread([&] { result = lathe::attempt(n, operation); }).join();
  // glibc unmaps what the thread kept, and runs the destructors of its statics, only when some library is closed next:
  // this one, which glibc itself brings.
  void* const other = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
  EXPECT_EQ(other ? dlclose(other) : -1, 0);
  result.lost = lathe::live_blocks - live;
  return result;
}

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

class RuntimeAllocationFailure : public testing::Test {
 protected:
  // y = relu(x * w), w all 2, which holds its runtime.
  void SetUp() override {
    const auto builder = own(createInferBuilder(logger));
    const auto network = own(builder->createNetworkV2(0));
    ITensor* const given = network->addInput("x", DataType::kFLOAT, Dims2(2, 8));
    ITensor* const w = network->addConstant(Dims2(8, 4), {DataType::kFLOAT, weights.data(), 32})->getOutput(0);
    constexpr auto kNone = MatrixOperation::kNONE;
    ITensor* const product = network->addMatrixMultiply(*given, kNone, *w, kNone)->getOutput(0);
    ITensor* const result = network->addActivation(*product, ActivationType::kRELU)->getOutput(0);
    result->setName("y");
    network->markOutput(*result);
    const auto config = own(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kVERSION_COMPATIBLE);
    lathe::setBuildBudget(*config, 0);
    plan = own(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr);
  }

  void open(const char* folder, const char* name) {
    library_ = dlopen((std::string(folder) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    create_ = reinterpret_cast<Create*>(dlsym(library_, "createInferRuntime_INTERNAL"));
    ASSERT_NE(create_, nullptr);
  }
  void TearDown() override {
    if (library_) dlclose(library_);
  }

  bool runs() {
    y = {};
    const auto runtime = own(static_cast<IRuntime*>(create_(&logger, NV_TENSORRT_VERSION)));
    if (!runtime) return false;
    runtime->setEngineHostCodeAllowed(true);
    const auto engine = own(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    const auto context = engine ? own(engine->createExecutionContext()) : nullptr;
    void* bindings[] = {x.data(), y.data()};
    return context && context->executeV2(bindings);
  }
  void sweep() {
    EXPECT_GT(lathe::sweep_allocations(
                  [&] {
                    logger.errors = 0;
                    const bool done = runs();
                    EXPECT_EQ(logger.errors, done ? 0 : 1);
                    EXPECT_EQ(y[0], done ? 16 : 0);
                    return done;
                  },
                  &attempt_alone),
              100);
  }

  lathe::CountErrors logger;
  std::unique_ptr<IHostMemory> plan;
  std::array<float, 32> weights = [] {
    std::array<float, 32> all;
    all.fill(2);
    return all;
  }();
  std::array<float, 16> x = {1, 1, 1, 1, 1, 1, 1, 1};
  std::array<float, 8> y{};

 private:
  using Create = void*(void*, int32_t);
  void* library_ = nullptr;
  Create* create_ = nullptr;
};

TEST_F(RuntimeAllocationFailure, Lean) {
  open(kOwn, "liblathe_lean.so.0");
  sweep();
}

TEST_F(RuntimeAllocationFailure, Dispatch) {
  open(kOwn, "liblathe_dispatch.so.0");
  sweep();
}

TEST_F(RuntimeAllocationFailure, DispatchWithThePlansRuntime) {
  if (kIsSanitized) GTEST_SKIP() << "a runtime with a sanitizer is larger than what a plan may bring";
  open(kLater, "liblathe_dispatch.so.0");
  sweep();
}

}  // namespace
}  // namespace nvinfer1
