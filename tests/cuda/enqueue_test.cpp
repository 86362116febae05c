// SPDX-License-Identifier: Apache-2.0
// Running an engine on the stand-in GPU through the public interface: what enqueueV3 may not do, and graphs.
#include <cmath>
#include <new>

#include "NvInfer.h"
#include "cuda/fake_device.h"
#include "device/cuda/driver.h"
#include "lathe.h"

namespace {

thread_local int64_t* allocations = nullptr;  // counted while set

[[gnu::noinline]] void* counted(std::size_t size) {
  if (allocations && !fake_cuda_inside()) ++*allocations;
  return std::malloc(size ? size : 1);
}
// Inlined, g++ takes it for a mismatch with operator new.
[[gnu::noinline]] void release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }

namespace lathe::cuda {
namespace {

namespace nv = nvinfer1;

constexpr int64_t kIn = 8, kOut = 5, kMostRows = 16;

struct LastError final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) text = message;
  }
  std::string text;
};

// y = relu(x w), then a softmax: two steps at least.
class EnqueueTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    make_engine();
    ASSERT_NE(engine_, nullptr) << log_.text;
    context_.reset(engine_->createExecutionContext());
    ASSERT_NE(context_, nullptr) << log_.text;
    device_ = *open_device(0);
    x_ = *device_->allocate(kMostRows * kIn * sizeof(float));
    y_ = *device_->allocate(kMostRows * kOut * sizeof(float));
    context_->setTensorAddress("x", x_.data());
    context_->setTensorAddress("y", y_.data());
    application_ = *device_->make_queue();
    ASSERT_OK(application_->begin());  // its context is current, as an application's is
    ASSERT_EQ((*driver())->cuStreamCreate(&stream_, 0), CUDA_SUCCESS);
  }
  void TearDown() override {
    context_.reset();
    engine_.reset();
    runtime_.reset();
    if (stream_) (*driver())->cuStreamDestroy(stream_);
    if (application_) application_->end();
    application_.reset();
    x_ = DeviceMemory();
    y_ = DeviceMemory();
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  void make_engine() {
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(-1, kIn));
    for (int64_t i = 0; i < kIn * kOut; ++i) weights_.push_back(std::sin(static_cast<float>(i)));
    nv::ITensor* w =
        network->addConstant(nv::Dims2(kIn, kOut), {nv::DataType::kFLOAT, weights_.data(), kIn * kOut})->getOutput(0);
    nv::ITensor* product =
        network->addMatrixMultiply(*x, nv::MatrixOperation::kNONE, *w, nv::MatrixOperation::kNONE)->getOutput(0);
    nv::ISoftMaxLayer* softmax =
        network->addSoftMax(*network->addActivation(*product, nv::ActivationType::kRELU)->getOutput(0));
    softmax->setAxes(1U << 1);
    nv::ITensor* y = softmax->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    nv::IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", nv::OptProfileSelector::kMIN, nv::Dims2(1, kIn));
    profile->setDimensions("x", nv::OptProfileSelector::kOPT, nv::Dims2(4, kIn));
    profile->setDimensions("x", nv::OptProfileSelector::kMAX, nv::Dims2(kMostRows, kIn));
    config->addOptimizationProfile(profile);
    config->clearFlag(nv::BuilderFlag::kTF32);
    setTarget(*config, "cuda");
    setBuildBudget(*config, 0);
    const std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr) << log_.text;
    runtime_.reset(nv::createInferRuntime(log_));
    engine_.reset(runtime_->deserializeCudaEngine(plan->data(), plan->size()));
  }

  // The stand-in's memory is the host's.
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

  LastError log_;
  std::vector<float> weights_;
  std::unique_ptr<nv::IRuntime> runtime_;
  std::unique_ptr<nv::ICudaEngine> engine_;
  std::unique_ptr<nv::IExecutionContext> context_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Queue> application_;
  DeviceMemory x_, y_;
  CUstream stream_ = nullptr;
};

TEST_F(EnqueueTest, NeitherAllocatesNorWaits) {
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
  fill(4, 77);
  const size_t before = fake_cuda_calls();
  int64_t count = 0;
  allocations = &count;
  bool ran = true;
  for (int i = 0; i < 5; ++i) ran &= enqueue();
  allocations = nullptr;
  EXPECT_TRUE(ran) << log_.text;
  EXPECT_EQ(count, 0);
  size_t graphs = 0;
  for (size_t i = before; i < fake_cuda_calls(); ++i) {
    const std::string call = fake_cuda_call(i);
    graphs += call == "cuGraphLaunch";
    for (const char* forbidden : {"Alloc", "Free", "Synchronize", "Memcpy", "Capture_v2", "Instantiate", "Create"})
      EXPECT_EQ(call.find(forbidden), std::string::npos) << call;
  }
  EXPECT_EQ(graphs, 5u);  // the whole engine is one graph
  expect_results(4);
}

// From the first run on, whatever the shapes: memory came with the context.
TEST_F(EnqueueTest, TakesNoMemoryForNewShapes) {
  for (const int64_t rows : {1, 16, 4, 7, 16}) {
    fill(rows, static_cast<float>(rows));
    ASSERT_TRUE(context_->setInputShape("x", nv::Dims2(rows, kIn)));
    const size_t before = fake_cuda_calls();
    ASSERT_TRUE(enqueue()) << log_.text;
    for (size_t i = before; i < fake_cuda_calls(); ++i) {
      const std::string call = fake_cuda_call(i);
      for (const char* forbidden : {"MemAlloc", "MemFree"})
        EXPECT_EQ(call.find(forbidden), std::string::npos) << call << " for " << rows << " rows";
    }
    expect_results(rows);
  }
}

// Before it is recorded, work is launched step by step, and allocates no more than that.
TEST_F(EnqueueTest, LaunchesAllocateNothing) {
  run(4, 0);
  ASSERT_EQ((*driver())->cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  int64_t count = 0;
  allocations = &count;
  const bool ran = enqueue();
  allocations = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ((*driver())->cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  (*driver())->cuGraphDestroy(graph);
  EXPECT_TRUE(ran);
  EXPECT_EQ(count, 0);
}

TEST_F(EnqueueTest, GraphsFollowTheShapes) {
  for (const int64_t rows : {4, 4, 4, 7, 7, 7, 1, 4, 4, 16, 16}) run(rows, static_cast<float>(rows));
  EXPECT_EQ(fake_cuda_live("executable"), 1u);
  // Other addresses too.
  const DeviceMemory other = *device_->allocate(y_.size());
  context_->setTensorAddress("y", other.data());
  fill(16, 5);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(enqueue()) << log_.text;
  std::memcpy(y_.data(), other.data(), y_.size());
  expect_results(16);
}

TEST_F(EnqueueTest, IsRightWithinAnOuterCapture) {
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
  ASSERT_EQ((*driver())->cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_TRUE(enqueue()) << log_.text;
  CUgraph graph = nullptr;
  ASSERT_EQ((*driver())->cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ((*driver())->cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  for (const float seed : {20.0f, 30.0f}) {
    fill(4, seed);
    ASSERT_EQ((*driver())->cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
    expect_results(4);
  }
  (*driver())->cuGraphExecDestroy(executable);
  (*driver())->cuGraphDestroy(graph);
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
}

}  // namespace
}  // namespace lathe::cuda
