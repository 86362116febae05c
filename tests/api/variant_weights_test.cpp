// SPDX-License-Identifier: Apache-2.0
// Plans for several targets whose weights are there in one order: what is derived of them is refitted, stripped and
// streamed as that of a plan for one target is.
#include "plan/variants.h"

#include <gtest/gtest.h>

#include "api/refit_world.h"

namespace nvinfer1::refits {
namespace {

using Plan = std::unique_ptr<IHostMemory>;

constexpr int32_t kImages = 2, kInputs = 8, kOutputs = 96;

std::span<const std::byte> bytes_of(const IHostMemory& plan) {
  return {static_cast<const std::byte*>(plan.data()), plan.size()};
}

struct NamedWeights {
  const char* name;
  lathe::Tensor content;
};

class VariantWeights : public RefitTest {
 protected:
  static std::vector<NamedWeights> weights(uint32_t seed) {
    std::vector<NamedWeights> all;
    for (const auto& [name, dims] : std::initializer_list<std::pair<const char*, lathe::Dims>>{
             {"conv.w", {kOutputs, kInputs, 3, 3}}, {"conv.b", {kOutputs}}, {"fc.w", {kOutputs, kOutputs}}})
      all.push_back(
          {name, random_weights(lathe::DType::f32, dims, 10 * seed + static_cast<uint32_t>(all.size()), -1, 1)});
    return all;
  }

  // A convolution, the mean of each of its maps, and a product.
  Plan build(const std::string& targets, uint32_t seed, const std::vector<BuilderFlag>& flags) {
    const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::vector<NamedWeights> all = weights(seed);
    const auto given = [&](size_t i) { return as_weights(all[i].content); };
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4(kImages, kInputs, 6, 6));
    auto* const conv = network->addConvolutionNd(*x, kOutputs, Dims2(3, 3), given(0), given(1));
    conv->setPaddingNd(Dims2(1, 1));
    x = network->addActivation(*conv->getOutput(0), ActivationType::kRELU)->getOutput(0);
    x = network->addReduce(*x, ReduceOperation::kAVG, 0b1100, /*keepDimensions=*/false)->getOutput(0);
    ITensor* const w = network->addConstant(Dims2(kOutputs, kOutputs), given(2))->getOutput(0);
    ITensor* const y = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(network->setWeightsName(given(i), all[i].name));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->clearFlag(BuilderFlag::kTF32);
    for (const BuilderFlag flag : flags) config->setFlag(flag);
    lathe::setBuildBudget(*config, 0);
    EXPECT_TRUE(lathe::setTargets(*config, targets.c_str())) << lathe::lastError();
    Plan plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << logger.last();
    return plan;
  }

  // What this machine runs, and a target that it does not, whose kernels want another order of the same weights.
  static std::string own() { return on_gpu() ? "cuda" : "cpu"; }
  static std::vector<std::string> lists() {
#ifdef __aarch64__
    const std::string other = "cpu-x86_64-avx2";
#else
    const std::string other = "cpu-arm64";
#endif
    return {own() + "," + other, other + "," + own()};
  }

  static std::vector<std::byte> run(ICudaEngine& engine) {
    const std::unique_ptr<IExecutionContext> context(engine.createExecutionContext());
    if (!context) return {};
    const lathe::Tensor x = random_weights(lathe::DType::f32, {kImages, kInputs, 6, 6}, 7, -1, 1);
    std::vector<std::byte> y(sizeof(float) * kImages * kOutputs);
    void* bindings[] = {const_cast<void*>(x.data()), y.data()};
    return context->executeV2(bindings) ? y : std::vector<std::byte>();
  }

  bool refit(ICudaEngine& engine, uint32_t seed) {
    const std::unique_ptr<IRefitter> refitter(createInferRefitter(engine, logger));
    const std::vector<NamedWeights> all = weights(seed);
    for (const auto& [name, content] : all)
      if (!refitter->setNamedWeights(name, as_weights(content))) return false;
    return refitter->refitCudaEngine();
  }

  static uint64_t derived_bytes(const IHostMemory& plan) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < 2; ++i) {
      const auto pieces = lathe::plan::derived_weights_of(bytes_of(plan), i);
      for (const lathe::plan::WeightsWindow& piece : *pieces) bytes += piece.bytes;
    }
    return bytes;
  }
};

// Those of the convolution; CPUs read the product's in one order, whatever their vectors are.
constexpr uint64_t kDerivedBytes = sizeof(float) * kOutputs * kInputs * 9;
constexpr uint64_t kPackedBytes = sizeof(float) * kOutputs * (kInputs * 9 + kOutputs);

TEST_F(VariantWeights, AreRefittedAsThoseOfOneTarget) {
  const std::vector<BuilderFlag> flags = {BuilderFlag::kREFIT};
  const Plan first = build(own(), 1, flags), second = build(own(), 2, flags);
  const auto before = run(*load(*first)), after = run(*load(*second));
  const auto alone = load(*first);
  EXPECT_TRUE(refit(*alone, 2)) << logger.last();
  const Plan refitted(alone->serialize());
  ASSERT_FALSE(before.empty());
  ASSERT_NE(before, after);
  for (const std::string& targets : lists()) {
    SCOPED_TRACE(targets);
    const Plan plan = build(targets, 1, flags);
    EXPECT_GE(derived_bytes(*plan), kDerivedBytes);
    const auto engine = load(*plan);
    ASSERT_TRUE(engine && engine->isRefittable());
    EXPECT_EQ(run(*engine), before);
    EXPECT_TRUE(refit(*engine, 2)) << logger.last();
    EXPECT_EQ(run(*engine), after);
    const Plan written(engine->serialize());
    EXPECT_TRUE(std::ranges::equal(bytes_of(*written), bytes_of(*refitted)));
    EXPECT_TRUE(refit(*engine, 1));
    EXPECT_EQ(run(*engine), before);
  }
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// Of weights that are not there nothing is derived; they come with the refit, for the variant that is loaded.
TEST_F(VariantWeights, ThatAreStrippedComeWithARefit) {
  const Plan full = build(own(), 3, {BuilderFlag::kREFIT_IDENTICAL});
  const auto wanted = run(*load(*full));
  for (const std::string& targets : lists()) {
    SCOPED_TRACE(targets);
    const Plan plan = build(targets, 3, {BuilderFlag::kSTRIP_PLAN});
    EXPECT_EQ(derived_bytes(*plan), 0);
    EXPECT_LT(plan->size() + 2 * kPackedBytes,
              build(targets, 3, {BuilderFlag::kREFIT_IDENTICAL})->size() + kPackedBytes);
    const auto engine = load(*plan);
    ASSERT_NE(engine, nullptr);
    EXPECT_TRUE(run(*engine).empty());
    expect_report({"LATHE-9002", "'conv.w'", "'fc.w'"});
    EXPECT_FALSE(refit(*engine, 4));
    expect_report({"kREFIT_IDENTICAL"});
    EXPECT_TRUE(refit(*engine, 3)) << logger.last();
    EXPECT_EQ(run(*engine), wanted);
    const Plan written(engine->serialize());
    EXPECT_TRUE(std::ranges::equal(bytes_of(*written), bytes_of(*full)));
  }
}

TEST_F(VariantWeights, AreStreamedAsThoseOfOneTarget) {
  if (!on_gpu()) GTEST_SKIP() << "of GPUs";
  const std::vector<BuilderFlag> flags = {BuilderFlag::kWEIGHT_STREAMING};
  const Plan alone = build(own(), 5, flags);
  const auto wanted = run(*load(*alone));
  ASSERT_FALSE(wanted.empty());
  for (const std::string& targets : lists()) {
    SCOPED_TRACE(targets);
    const Plan plan = build(targets, 5, flags);
    EXPECT_GE(derived_bytes(*plan), kDerivedBytes);
    const auto engine = load(*plan);
    ASSERT_NE(engine, nullptr);
    const int64_t all = engine->getStreamableWeightsSize();
    EXPECT_GE(all, static_cast<int64_t>(kPackedBytes));
    for (const int64_t budget : {all, all / 2, int64_t{0}}) {
      EXPECT_TRUE(engine->setWeightStreamingBudgetV2(budget)) << logger.last();
      EXPECT_EQ(run(*engine), wanted) << budget;
    }
    const Plan written(engine->serialize());
    EXPECT_TRUE(std::ranges::equal(bytes_of(*written), bytes_of(*alone)));
  }
}

// Streaming and refits in one plan: the weights that can be replaced stay on the device, as in a plan for one target.
TEST_F(VariantWeights, ThatCanBeReplacedAreNotStreamed) {
  if (!on_gpu()) GTEST_SKIP() << "of GPUs";
  const Plan plan = build(lists()[0], 1, {BuilderFlag::kWEIGHT_STREAMING, BuilderFlag::kREFIT});
  const auto engine = load(*plan);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->getStreamableWeightsSize(), 0);
  const Plan second = build(own(), 2, {BuilderFlag::kREFIT});
  EXPECT_TRUE(refit(*engine, 2)) << logger.last();
  EXPECT_EQ(run(*engine), run(*load(*second)));
}

}  // namespace
}  // namespace nvinfer1::refits
