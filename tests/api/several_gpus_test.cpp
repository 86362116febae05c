// SPDX-License-Identifier: Apache-2.0
// Several GPUs of one host: what is built, loaded and run for one leaves the others alone.
#include <thread>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

// The driver's own functions; the emulated one can pretend to have as many GPUs as are asked for.
class Driver {
 public:
  int num_devices() const {
    int count = 0;
    return driver_function<int(unsigned)>("cuInit")(0) == 0 &&
                   driver_function<int(int*)>("cuDeviceGetCount")(&count) == 0
               ? count
               : 0;
  }
  bool pretend(int count) const {
    auto* set = driver_function<void(int)>("fake_cuda_set_device_count");
    return set ? set(count), true : false;
  }
  void* retain(int device) const {
    void* context = nullptr;
    EXPECT_EQ(driver_function<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device), 0);
    return context;
  }
  void release(int device) const { EXPECT_EQ(driver_function<int(int)>("cuDevicePrimaryCtxRelease_v2")(device), 0); }
  void push(void* context) const { EXPECT_EQ(driver_function<int(void*)>("cuCtxPushCurrent_v2")(context), 0); }
  void pop() const {
    void* context = nullptr;
    EXPECT_EQ(driver_function<int(void**)>("cuCtxPopCurrent_v2")(&context), 0);
  }
  void* current() const {
    void* context = nullptr;
    EXPECT_EQ(driver_function<int(void**)>("cuCtxGetCurrent")(&context), 0);
    return context;
  }
  size_t free_bytes() const {  // of the current device
    size_t free = 0, total = 0;
    EXPECT_EQ(driver_function<int(size_t*, size_t*)>("cuMemGetInfo_v2")(&free, &total), 0);
    return free;
  }
};

class SeveralGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (!on_gpu()) GTEST_SKIP() << "of CPUs there is one";
    pretends_ = driver_.pretend(2);
    if (driver_.num_devices() < 2) GTEST_SKIP() << "needs two GPUs";
    for (int device : {0, 1}) contexts_[device] = driver_.retain(device);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (int device : {0, 1})
      if (contexts_[device]) driver_.release(device);
    lathe::releaseIdleDevices();  // one that goes must not be held
    if (pretends_) driver_.pretend(1);
  }

  // y = relu(x * w), with all of w a quarter of the device's number and 1; measured where the GPUs are real.
  void build_and_run(int device, int runs) {
    driver_.push(contexts_[device]);
    std::vector<float> weights(512 * 512, 0.25F * static_cast<float>(device + 1)), x(64 * 512, 1), y(64 * 512);
    const std::unique_ptr<IBuilder> builder(createInferBuilder(logger_));
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor* in = network->addInput("x", DataType::kFLOAT, Dims2(64, 512));
    ITensor* w = network->addConstant(Dims2(512, 512), {DataType::kFLOAT, weights.data(), 512 * 512})->getOutput(0);
    ITensor* product =
        network->addMatrixMultiply(*in, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
    ITensor* out = network->addActivation(*product, ActivationType::kRELU)->getOutput(0);
    out->setName("y");
    network->markOutput(*out);
    ASSERT_TRUE(lathe::setTarget(*config, ("cuda:" + std::to_string(device)).c_str()));
    lathe::setBuildBudget(*config, pretends_ ? 0 : 5);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr) << lathe::lastError();
    EXPECT_EQ(driver_.current(), contexts_[device]) << "a build leaves the thread's context as it was";
    const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger_));
    const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_NE(engine, nullptr) << lathe::lastError();
    const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    ASSERT_NE(context, nullptr) << lathe::lastError();
    ASSERT_TRUE(context->setTensorAddress("x", x.data()) && context->setTensorAddress("y", y.data()));
    for (int run = 0; run < runs; ++run) {
      std::fill(y.begin(), y.end(), -1.0F);
      ASSERT_TRUE(context->enqueueV3(nullptr)) << lathe::lastError();
      for (const float value : y) ASSERT_EQ(value, 128.0F * static_cast<float>(device + 1));
    }
    EXPECT_EQ(driver_.current(), contexts_[device]);
    driver_.pop();
  }

  Driver driver_;
  Errors logger_;
  bool pretends_ = false;
  void* contexts_[2] = {};
};

// S153.
TEST_F(SeveralGpus, BuildersInThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (int device : {0, 1}) threads.emplace_back([=, this] { build_and_run(device, 20); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(logger_.text.empty()) << logger_.last();
}

TEST_F(SeveralGpus, OneThatIsNotMeantKeepsItsMemory) {
  for (int device : {0, 1}) build_and_run(device, 1);  // what the driver keeps of a first use is taken now
  driver_.push(contexts_[0]);
  const size_t before = driver_.free_bytes();
  std::thread([&] { build_and_run(1, 20); }).join();
  EXPECT_EQ(driver_.free_bytes(), before);
  driver_.pop();
}

}  // namespace
}  // namespace nvinfer1
