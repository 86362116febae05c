// SPDX-License-Identifier: Apache-2.0
// Inputs of a GPU's engine whose values are shapes: they lie in the host's memory.
#include "NvInfer.h"
#include "device/cuda/driver.h"
#include "fake_cuda/fake_device.h"
#include "lathe.h"

namespace lathe::cuda {
namespace {

namespace nv = nvinfer1;

struct Errors final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) text += message;
  }
  std::string text;
};

// y = reshape(x[n, 4], target) + reshape(x[n, 4], target).
class GpuShapeInput : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::IShuffleLayer* shuffle = network->addShuffle(*network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(-1, 4)));
    shuffle->setInput(1, *network->addInput("target", nv::DataType::kINT64, nv::Dims{1, {2}}));
    nv::ITensor* shaped = shuffle->getOutput(0);
    nv::ITensor* y = network->addElementWise(*shaped, *shaped, nv::ElementWiseOperation::kSUM)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    nv::IOptimizationProfile* profile = builder->createOptimizationProfile();
    const std::pair<nv::OptProfileSelector, int64_t> sizes[] = {
        {nv::OptProfileSelector::kMIN, 1}, {nv::OptProfileSelector::kOPT, 4}, {nv::OptProfileSelector::kMAX, 32}};
    for (const auto& [select, size] : sizes) {
      const int64_t target[] = {size, size};
      profile->setDimensions("x", select, nv::Dims2(size, 4));
      profile->setShapeValuesV2("target", select, target, 2);
    }
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    config->addOptimizationProfile(profile);
    setTarget(*config, "cuda");
    setBuildBudget(*config, 0);
    const std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr) << log_.text;
    runtime_.reset(nv::createInferRuntime(log_));
    engine_.reset(runtime_->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_NE(engine_, nullptr) << log_.text;
    context_.reset(engine_->createExecutionContext());
    device_ = *open_device(0);
  }
  void TearDown() override {
    context_.reset();
    engine_.reset();
    runtime_.reset();
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  Errors log_;
  std::unique_ptr<nv::IRuntime> runtime_;
  std::unique_ptr<nv::ICudaEngine> engine_;
  std::unique_ptr<nv::IExecutionContext> context_;
  std::shared_ptr<Device> device_;
};

TEST_F(GpuShapeInput, IsReadOnTheHost) {
  EXPECT_EQ(engine_->getTensorLocation("target"), nv::TensorLocation::kHOST);
  const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y[8] = {};
  int64_t target[2] = {4, 2};
  ASSERT_TRUE(context_->setInputShape("x", nv::Dims2(2, 4)));
  ASSERT_TRUE(context_->setInputTensorAddress("x", x));
  ASSERT_TRUE(context_->setTensorAddress("y", y));
  ASSERT_TRUE(context_->setTensorAddress("target", target));
  for (const int64_t rows : {4, 1, 8, 8, 2}) {
    target[0] = rows, target[1] = 8 / rows;
    void* bindings[] = {const_cast<float*>(x), target, y};
    ASSERT_TRUE(context_->executeV2(bindings)) << log_.text;
    EXPECT_EQ(context_->getTensorShape("y").d[0], rows);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(y[i], 2 * x[i]);
  }
}

TEST_F(GpuShapeInput, InTheDevicesMemoryIsRefused) {
  DeviceMemory memory = *device_->allocate(16);
  EXPECT_FALSE(context_->setTensorAddress("target", memory.data()));
  EXPECT_NE(log_.text.find("read on the host"), std::string::npos) << log_.text;
  EXPECT_EQ(context_->getTensorAddress("target"), nullptr);
  EXPECT_TRUE(context_->setTensorAddress("x", memory.data()));
  memory = DeviceMemory();
}

}  // namespace
}  // namespace lathe::cuda
