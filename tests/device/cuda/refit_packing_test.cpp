// SPDX-License-Identifier: Apache-2.0
// Engines for a GPU carry the kernel that packs their new weights, whichever form their code has.
#include <numeric>

#include "device/cuda/enqueue_fixture.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kChannels = 16, kSize = 6, kOutputs = 24, kPixels = kSize * kSize;
constexpr int64_t kWeights = kOutputs * kChannels * 9;

// y = conv(x, w), whose weights kernels read in an order of their own.
class RefitPackingTest : public EngineTest, public testing::WithParamInterface<nv::HardwareCompatibilityLevel> {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    weights_.resize(kWeights);
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims4(1, kChannels, kSize, kSize));
    set_weights(1);
    const nv::Weights w{nv::DataType::kFLOAT, weights_.data(), kWeights};
    nv::IConvolutionLayer* conv = network->addConvolutionNd(*x, kOutputs, nv::DimsHW(3, 3), w, {});
    conv->setPaddingNd(nv::DimsHW(1, 1));
    network->setWeightsName(w, "w");
    conv->getOutput(0)->setName("y");
    network->markOutput(*conv->getOutput(0));
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(nv::BuilderFlag::kREFIT);
    config->clearFlag(nv::BuilderFlag::kTF32);
    config->setHardwareCompatibilityLevel(GetParam());
    setTarget(*config, "cuda");
    setBuildBudget(*config, 0);
    const std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr) << log_.text;
    runtime_.reset(nv::createInferRuntime(log_));
    engine_.reset(runtime_->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_NE(engine_, nullptr) << log_.text;
    context_.reset(engine_->createExecutionContext());
    ASSERT_NE(context_, nullptr) << log_.text;
    x_ = *device_->allocate(kChannels * kPixels * sizeof(float));
    y_ = *device_->allocate(kOutputs * kPixels * sizeof(float));
    auto* const pixels = reinterpret_cast<float*>(x_.data());
    for (int64_t i = 0; i < kChannels * kPixels; ++i) pixels[i] = std::cos(static_cast<float>(i));
    context_->setTensorAddress("x", x_.data());
    context_->setTensorAddress("y", y_.data());
  }

  void set_weights(float seed) {
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = std::sin(seed + static_cast<float>(i));
  }
  double expected(int64_t output, int64_t row, int64_t column) const {
    const auto* const x = reinterpret_cast<const float*>(x_.data());
    double sum = 0;
    for (int64_t c = 0; c < kChannels; ++c)
      for (int64_t i = 0; i < 9; ++i) {
        const int64_t h = row + i / 3 - 1, w = column + i % 3 - 1;
        if (h < 0 || h >= kSize || w < 0 || w >= kSize) continue;
        sum += double{x[(c * kSize + h) * kSize + w]} * weights_[static_cast<size_t>((output * kChannels + c) * 9 + i)];
      }
    return sum;
  }
  size_t launches_of_refit(float seed) {
    const std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(*engine_, log_));
    set_weights(seed);
    EXPECT_TRUE(refitter->setNamedWeights("w", {nv::DataType::kFLOAT, weights_.data(), kWeights})) << log_.text;
    const size_t first = fake_cuda_calls();
    EXPECT_TRUE(refitter->refitCudaEngine()) << log_.text;
    size_t launches = 0;
    for (size_t i = first; i < fake_cuda_calls(); ++i)
      launches += std::string_view("cuLaunchKernelEx") == fake_cuda_call(i);
    return launches;
  }
  void expect_results() {
    ASSERT_TRUE(context_->enqueueV3(nullptr)) << log_.text;
    const std::unique_ptr<Queue> queue = *device_->make_stream_queue(nullptr);
    ASSERT_OK(device_->wait(*queue));
    const auto* const y = reinterpret_cast<const float*>(y_.data());
    for (int64_t i = 0; i < kOutputs * kPixels; ++i)
      ASSERT_NEAR(y[i], expected(i / kPixels, i % kPixels / kSize, i % kSize), 1e-4) << i;
  }
};

TEST_P(RefitPackingTest, TheGpuPacks) {
  expect_results();
  for (const float seed : {2.0F, 3.0F}) {
    EXPECT_EQ(launches_of_refit(seed), 1u);
    expect_results();
  }
}

// Where there is room for the new constants beside the old ones, and none for their weights.
TEST_P(RefitPackingTest, TheHostPacksWithoutScratchMemory) {
  fake_cuda_fail("cuMemAllocAsync", 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
  const size_t failures = fake_cuda_failures();
  EXPECT_EQ(launches_of_refit(2), 0u);
  EXPECT_EQ(fake_cuda_failures(), failures + 1);
  expect_results();
  EXPECT_EQ(launches_of_refit(3), 1u);
  expect_results();
}

INSTANTIATE_TEST_SUITE_P(All, RefitPackingTest,
                         testing::Values(nv::HardwareCompatibilityLevel::kNONE,
                                         nv::HardwareCompatibilityLevel::kAMPERE_PLUS));

}  // namespace
}  // namespace lathe::cuda
