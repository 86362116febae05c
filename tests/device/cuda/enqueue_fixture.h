// SPDX-License-Identifier: Apache-2.0
// Engines on the stand-in GPU, made and run through the public interface.
#pragma once

#include <array>
#include <cmath>

#include "NvInfer.h"
#include "device/cuda/driver.h"
#include "fake_cuda/fake_device.h"
#include "lathe.h"

namespace lathe::cuda {

namespace nv = nvinfer1;

constexpr int64_t kIn = 8, kOut = 5, kMostRows = 16;

struct LastError final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) text = message;
  }
  std::string text;
};

// An engine that reads x and writes y, of any number of rows, and memory for both, which is the host's.
class EngineTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    device_ = *open_device(0);
  }
  void TearDown() override {
    let_engine_go();
    x_ = DeviceMemory();
    y_ = DeviceMemory();
    device_.reset();
    FakeDeviceTest::TearDown();
  }
  void let_engine_go() {
    context_.reset();
    engine_.reset();
    runtime_.reset();
  }

  // Of y, for the fewest, usual and most rows of x.
  void build_engine(nv::IBuilder& builder, nv::INetworkDefinition& network, nv::IBuilderConfig& config, nv::ITensor& y,
                    const nv::Dims2 (&x)[3]) {
    y.setName("y");
    network.markOutput(y);
    nv::IOptimizationProfile* profile = builder.createOptimizationProfile();
    for (const int i : {0, 1, 2})
      profile->setDimensions(
          "x", std::array{nv::OptProfileSelector::kMIN, nv::OptProfileSelector::kOPT, nv::OptProfileSelector::kMAX}[i],
          x[i]);
    config.addOptimizationProfile(profile);
    config.clearFlag(nv::BuilderFlag::kTF32);
    setTarget(config, "cuda");
    setBuildBudget(config, 0);
    const std::unique_ptr<nv::IHostMemory> plan(builder.buildSerializedNetwork(network, config));
    ASSERT_NE(plan, nullptr) << log_.text;
    runtime_.reset(nv::createInferRuntime(log_));
    engine_.reset(runtime_->deserializeCudaEngine(plan->data(), plan->size()));
  }

  LastError log_;
  std::vector<float> weights_;
  std::unique_ptr<nv::IRuntime> runtime_;
  std::unique_ptr<nv::ICudaEngine> engine_;
  std::unique_ptr<nv::IExecutionContext> context_;
  std::shared_ptr<Device> device_;
  DeviceMemory x_, y_;
};

// y = relu(x w), then a softmax: two steps at least. On a stream of the application's.
class EnqueueTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    make_engine();
    ASSERT_NE(engine_, nullptr) << log_.text;
    context_.reset(engine_->createExecutionContext());
    ASSERT_NE(context_, nullptr) << log_.text;
    x_ = *device_->allocate(kMostRows * kIn * sizeof(float));
    y_ = *device_->allocate(kMostRows * kOut * sizeof(float));
    context_->setTensorAddress("x", x_.data());
    context_->setTensorAddress("y", y_.data());
    application_ = *device_->make_queue();
    ASSERT_OK(application_->begin());  // its context is current, as an application's is
    ASSERT_EQ((*driver())->cuStreamCreate(&stream_, 0), CUDA_SUCCESS);
  }
  void TearDown() override {
    let_engine_go();
    if (stream_) (*driver())->cuStreamDestroy(stream_);
    if (application_) application_->end();
    application_.reset();
    EngineTest::TearDown();
  }

  void make_engine() {
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    network->setName("rows");
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(-1, kIn));
    for (int64_t i = 0; i < kIn * kOut; ++i) weights_.push_back(std::sin(static_cast<float>(i)));
    nv::ITensor* w =
        network->addConstant(nv::Dims2(kIn, kOut), {nv::DataType::kFLOAT, weights_.data(), kIn * kOut})->getOutput(0);
    nv::ITensor* product =
        network->addMatrixMultiply(*x, nv::MatrixOperation::kNONE, *w, nv::MatrixOperation::kNONE)->getOutput(0);
    nv::ISoftMaxLayer* softmax =
        network->addSoftMax(*network->addActivation(*product, nv::ActivationType::kRELU)->getOutput(0));
    softmax->setAxes(1U << 1);
    network->markUnfusedTensorsAsDebugTensors();
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    build_engine(*builder, *network, *config, *softmax->getOutput(0), {{1, kIn}, {4, kIn}, {kMostRows, kIn}});
  }

  void fill(int64_t rows, float seed) {
    auto* x = reinterpret_cast<float*>(x_.data());
    for (int64_t i = 0; i < rows * kIn; ++i) x[i] = std::cos(seed + static_cast<float>(i));
  }
  void expect_results(int64_t rows) {
    const auto* x = reinterpret_cast<const float*>(x_.data());
    const auto* y = reinterpret_cast<const float*>(y_.data());
    for (int64_t r = 0; r < rows; ++r) {
      double powers[kOut], sum = 0;
      for (int64_t n = 0; n < kOut; ++n) {
        double product = 0;
        for (int64_t k = 0; k < kIn; ++k) product += x[r * kIn + k] * weights_[static_cast<size_t>(k * kOut + n)];
        sum += powers[n] = std::exp(std::max(product, 0.0));
      }
      for (int64_t n = 0; n < kOut; ++n) ASSERT_NEAR(y[r * kOut + n], powers[n] / sum, 1e-5) << r << " " << n;
    }
  }
  bool enqueue() { return context_->enqueueV3(reinterpret_cast<cudaStream_t>(stream_)); }
  void run(int64_t rows, float seed) {
    fill(rows, seed);
    ASSERT_TRUE(context_->setInputShape("x", nv::Dims2(rows, kIn)));
    ASSERT_TRUE(enqueue()) << log_.text;
    expect_results(rows);
  }

  std::unique_ptr<Queue> application_;
  CUstream stream_ = nullptr;
};

}  // namespace lathe::cuda
