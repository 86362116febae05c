// SPDX-License-Identifier: Apache-2.0
// What builds are for where there is a GPU, and an engine for the CPU that is given its memory.
#include "NvInfer.h"
#include "device/family.h"
#include "fake_cuda/fake_device.h"
#include "lathe.h"

namespace lathe::cuda {
namespace {

namespace nv = nvinfer1;

struct Words final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    (severity <= Severity::kERROR ? errors : infos) += std::string(message) + "\n";
  }
  std::string errors, infos;
};

class DefaultTargetTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
  }
  void TearDown() override {
    unsetenv("LATHE_TARGET");
    FakeDeviceTest::TearDown();
  }

  // y = relu(x), of four elements, for the default target.
  std::unique_ptr<nv::IHostMemory> build() {
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims{1, {4}});
    nv::ITensor* y = network->addActivation(*x, nv::ActivationType::kRELU)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    setBuildBudget(*config, 0);
    return std::unique_ptr<nv::IHostMemory>(builder->buildSerializedNetwork(*network, *config));
  }
  Words log_;
};

TEST_F(DefaultTargetTest, IsTheGpuThatIsThere) {
  unsetenv("LATHE_TARGET");
  EXPECT_EQ(default_target().name, "cuda");
  ASSERT_NE(build(), nullptr) << log_.errors;
  EXPECT_NE(log_.infos.find("the build is for cuda: there is such a device"), std::string::npos) << log_.infos;
}

TEST_F(DefaultTargetTest, IsWhatTheVariableNames) {
  setenv("LATHE_TARGET", "sm_90", 1);
  EXPECT_EQ(default_target().name, "cuda-sm_90");
  setenv("LATHE_TARGET", "", 1);
  EXPECT_EQ(default_target().name, "cuda");
  setenv("LATHE_TARGET", "cpu", 1);
  ASSERT_NE(build(), nullptr) << log_.errors;
  EXPECT_NE(log_.infos.find("the build is for cpu: LATHE_TARGET names it"), std::string::npos) << log_.infos;
}

TEST_F(DefaultTargetTest, UnknownTargetsOfTheVariableFailTheBuild) {
  setenv("LATHE_TARGET", "tpu", 1);
  EXPECT_EQ(build(), nullptr);
  EXPECT_NE(log_.errors.find("target 'tpu' is not known"), std::string::npos) << log_.errors;
}

TEST_F(DefaultTargetTest, EnginesOfTheCpuRefuseMemoryOfGpus) {
  setenv("LATHE_TARGET", "cpu", 1);
  const std::unique_ptr<nv::IHostMemory> plan = build();
  ASSERT_NE(plan, nullptr) << log_.errors;
  const std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(log_));
  const std::unique_ptr<nv::ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  ASSERT_NE(engine, nullptr) << log_.errors;
  const std::unique_ptr<nv::IExecutionContext> context(engine->createExecutionContext());
  const std::shared_ptr<Device> gpu = *open_device(0);
  const DeviceMemory there = *gpu->allocate(4 * sizeof(float));
  float x[4] = {-1, 2, -3, 4}, y[4] = {};
  ASSERT_TRUE(context->setTensorAddress("x", x));
  ASSERT_TRUE(context->setTensorAddress("y", there.data()));
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_NE(log_.errors.find("'y' lies at"), std::string::npos) << log_.errors;
  EXPECT_NE(log_.errors.find("LATHE_TARGET=cuda"), std::string::npos) << log_.errors;
  EXPECT_FALSE(context->enqueueV3(nullptr)) << "asked again, it forgot";
  ASSERT_TRUE(context->setTensorAddress("y", y));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << log_.errors;
  EXPECT_EQ(y[1], 2);
  EXPECT_EQ(y[2], 0);
}

}  // namespace
}  // namespace lathe::cuda
