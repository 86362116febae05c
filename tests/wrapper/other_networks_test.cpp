// SPDX-License-Identifier: Apache-2.0
// Engines whose sizes depend on values or data, with several profiles, and with
// weights that are streamed.
#include "wrapper/wrapper_world.h"

namespace lathe {
namespace {

constexpr nv::OptProfileSelector kSelectors[] = {nv::OptProfileSelector::kMIN, nv::OptProfileSelector::kOPT,
                                                 nv::OptProfileSelector::kMAX};

class OtherNetworksTest : public WrapperTest {
 protected:
  void SetUp() override {
    WrapperTest::SetUp();
    network.reset(builder->createNetworkV2(0));
    config.reset(builder->createBuilderConfig());
    setBuildBudget(*config, 0);
  }
  EngineFields fields(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    EngineFields fields = fields_of();
    fields.inputs = inputs;
    fields.outputs = outputs;
    return fields;
  }
  // y = reshape(x[2, 6], target).
  std::string build_reshape() {
    nv::ITensor* const x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(2, 6));
    nv::ITensor* const target = network->addInput("target", nv::DataType::kINT64, nv::Dims{1, {2}});
    nv::IShuffleLayer* const shuffle = network->addShuffle(*x);
    shuffle->setInput(1, *target);
    nv::ITensor* const y = network->addActivation(*shuffle->getOutput(0), nv::ActivationType::kRELU)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    nv::IOptimizationProfile* const profile = builder->createOptimizationProfile();
    const int64_t low[] = {1, 1}, middle[] = {3, 4}, high[] = {12, 12};
    const int64_t* const values[] = {low, middle, high};
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(profile->setShapeValuesV2("target", kSelectors[i], values[i], 2));
    EXPECT_EQ(config->addOptimizationProfile(profile), 0);
    return plan();
  }
  std::string build_nonzero() {
    nv::ITensor* const x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(2, 3));
    nv::ITensor* const y = network->addNonZero(*x, nv::DataType::kINT64)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    return plan();
  }
};

// S214: an engine whose sizes depend on values alone counts as one of open
// sizes; the values are read on the host, in either width.
TEST_F(OtherNetworksTest, ValuesThatAreSizes) {
  const std::unique_ptr<EngineWrapper> wrapper =
      wrap(build_reshape(), fields({"x", "target"}, {"y"}), {"", "none", "disabled"});
  ASSERT_NE(wrapper, nullptr);
  EXPECT_TRUE(wrapper->dynamicInputs());
  ASSERT_TRUE(wrapper->setCudaGraphs(true));
  const std::shared_ptr<void> memory = shared_memory(12 * 4);
  float* const x = static_cast<float*>(memory.get());
  std::iota(x, x + 12, 1.0F);
  const InputTensor input{"x", x, nv::DataType::kFLOAT, nv::Dims2(2, 6), kDevice};
  for (const int32_t rows : {4, 4, 6, 12}) {
    const int64_t wide[] = {rows, 12 / rows};
    const int32_t narrow[] = {rows, 12 / rows};
    for (const bool is_wide : {true, false}) {
      const InputTensor target{"target", is_wide ? static_cast<const void*>(wide) : narrow,
                               is_wide ? nv::DataType::kINT64 : nv::DataType::kINT32, nv::Dims{1, {2}}, kHost};
      std::vector<OutputTensor> outputs;
      ASSERT_TRUE(wrapper->run({target, input}, outputs)) << wrapperError();
      ASSERT_EQ(outputs[0].dims.nbDims, 2);
      EXPECT_EQ(outputs[0].dims.d[0], rows);
      EXPECT_EQ(std::memcmp(values_of<float>(outputs[0]).data(), x, 48), 0);
    }
  }
  // Values of the device's memory are fetched.
  const std::shared_ptr<void> values = shared_memory(16);
  const int64_t wide[] = {3, 4};
  std::memcpy(values.get(), wide, sizeof(wide));
  std::vector<OutputTensor> outputs;
  ASSERT_TRUE(wrapper->run({{"target", values.get(), nv::DataType::kINT64, nv::Dims{1, {2}}, kDevice}, input}, outputs))
      << wrapperError();
  EXPECT_EQ(outputs[0].dims.d[0], 3);
}

// Sizes that depend on data: outputs have memory when they are known, and
// graphs cannot hold that.
TEST_F(OtherNetworksTest, OutputsOfUnknownSizes) {
  const std::string bytes = build_nonzero();
  EngineFields needs = fields({"x"}, {"y"});
  needs.needsOutputAllocator = true;
  const std::unique_ptr<EngineWrapper> wrapper = wrap(bytes, needs), other = wrap(bytes, fields({"x"}, {"y"}));
  const std::shared_ptr<void> memory = shared_memory(24);
  float* const x = static_cast<float*>(memory.get());
  const InputTensor input{"x", x, nv::DataType::kFLOAT, nv::Dims2(2, 3), kDevice};
  for (const int count : {3, 6, 0}) {
    std::fill(x, x + 6, 0.0F);
    std::fill(x, x + count, 1.0F);
    std::vector<OutputTensor> outputs;
    ASSERT_TRUE(wrapper->run({input}, outputs)) << wrapperError();
    EXPECT_EQ(outputs[0].dims.d[1], count);
    const std::vector<int64_t> places = values_of<int64_t>(outputs[0]);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(places[i], i / 3);
      EXPECT_EQ(places[count + i], i % 3);
    }
  }
  EXPECT_TRUE(wrapper->outputAllocator());
  expect_refused(wrapper->setCudaGraphs(true), "LATHE-9002", {"needs output allocators"});
  expect_refused(wrapper->setOutputAllocator(false), "LATHE-9002", {"needs output allocators"});
  std::vector<OutputTensor> outputs;
  expect_refused(other->run({input}, outputs), "LATHE-5002", {"setOutputAllocator()"});
  ASSERT_TRUE(other->setCudaGraphs(true));
  expect_refused(other->setOutputAllocator(true), "LATHE-9002", {"turn one of them off"});
  ASSERT_TRUE(other->setCudaGraphs(false));
  ASSERT_TRUE(other->setOutputAllocator(true));
  expect_refused(other->setCudaGraphs(true), "LATHE-9002", {"turn one of them off"});
  std::fill(x, x + 6, 2.0F);
  ASSERT_TRUE(other->run({input}, outputs)) << wrapperError();
  EXPECT_EQ(outputs[0].dims.d[1], 6);
}

// The profile that is set stays while it fits; else the first that does is
// taken.
TEST_F(OtherNetworksTest, ProfilesAreChosen) {
  nv::ITensor* const x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(-1, 3));
  nv::ITensor* const y = network->addActivation(*x, nv::ActivationType::kRELU)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  for (const auto& [least, most] : {std::pair(1, 4), std::pair(3, 8), std::pair(16, 16)}) {
    nv::IOptimizationProfile* const profile = builder->createOptimizationProfile();
    for (size_t i = 0; i < 3; ++i) profile->setDimensions("x", kSelectors[i], nv::Dims2(i == 0 ? least : most, 3));
    EXPECT_GE(config->addOptimizationProfile(profile), 0);
  }
  const std::unique_ptr<EngineWrapper> wrapper = wrap(plan(), fields({"x"}, {"y"}));
  for (const int64_t rows : {2, 6, 3, 16, 4, 1}) {
    const Batch batch(rows);
    std::vector<OutputTensor> outputs;
    ASSERT_TRUE(wrapper->run({batch.input()}, outputs)) << rows << wrapperError();
    EXPECT_EQ(std::memcmp(values_of<float>(outputs[0]).data(), batch.x, static_cast<size_t>(rows) * 12), 0);
  }
  std::vector<OutputTensor> outputs;
  expect_refused(wrapper->run({Batch(12).input()}, outputs), "LATHE-5003", {"[12, 3]", "3 takes these sizes"});
}

// Tensors without elements have an address, too.
TEST_F(OtherNetworksTest, NothingIsRun) {
  nv::ITensor* const x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(-1, 3));
  nv::ITensor* const y = network->addActivation(*x, nv::ActivationType::kRELU)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  nv::IOptimizationProfile* const profile = builder->createOptimizationProfile();
  for (size_t i = 0; i < 3; ++i) profile->setDimensions("x", kSelectors[i], nv::Dims2(static_cast<int32_t>(2 * i), 3));
  EXPECT_EQ(config->addOptimizationProfile(profile), 0);
  const std::unique_ptr<EngineWrapper> wrapper = wrap(plan(), fields({"x"}, {"y"}), {"", "none", "disabled"});
  for (const bool graphs : {false, true}) {
    ASSERT_TRUE(wrapper->setCudaGraphs(graphs));
    for (int run = 0; run < 2; ++run) {
      std::vector<OutputTensor> outputs;
      ASSERT_TRUE(wrapper->run({{"x", nullptr, nv::DataType::kFLOAT, nv::Dims2(0, 3), kDevice}}, outputs))
          << wrapperError();
      EXPECT_EQ(outputs[0].dims.d[0], 0);
      EXPECT_EQ(outputs[0].bytes, 0);
    }
  }
}

// Weights beyond a budget are streamed; what is asked for beyond them all is
// all.
TEST_F(OtherNetworksTest, Budgets) {
  std::vector<float> weights(64 * 64, 0.5F), more(64 * 64, 0.25F);
  nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(2, 64));
  for (const std::vector<float>* layer : {&weights, &more, &weights}) {
    nv::ITensor* const w =
        network->addConstant(nv::Dims2(64, 64), {nv::DataType::kFLOAT, layer->data(), 64 * 64})->getOutput(0);
    nv::ITensor* const product =
        network->addMatrixMultiply(*x, nv::MatrixOperation::kNONE, *w, nv::MatrixOperation::kNONE)->getOutput(0);
    x = network->addActivation(*product, nv::ActivationType::kRELU)->getOutput(0);
  }
  x->setName("y");
  network->markOutput(*x);
  config->setFlag(nv::BuilderFlag::kWEIGHT_STREAMING);
  const std::unique_ptr<EngineWrapper> wrapper = wrap(plan(), fields({"x"}, {"y"}));
  const std::shared_ptr<void> memory = shared_memory(2 * 64 * 4);
  float* const in = static_cast<float*>(memory.get());
  std::fill(in, in + 128, 1.0F);
  const auto expect_sums = [&] {
    std::vector<OutputTensor> outputs;
    ASSERT_TRUE(wrapper->run({{"x", in, nv::DataType::kFLOAT, nv::Dims2(2, 64), kDevice}}, outputs)) << wrapperError();
    const std::vector<float> values = values_of<float>(outputs[0]);
    for (int i = 0; i < 128; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], 32.0F * 16 * 32);
  };
  expect_sums();
  const int64_t all = wrapper->streamableWeights();
  if (!nv::on_gpu() && all == 0) GTEST_SKIP() << "weights of a CPU's engine lie in its memory";
  ASSERT_GT(all, 0);
  expect_refused(wrapper->setWeightStreamingBudget(-1), "LATHE-9001", {"-1"});
  for (const int64_t budget : {int64_t{0}, all / 2, all, 2 * all}) {
    const int64_t before = wrapper->counts().contexts;
    ASSERT_TRUE(wrapper->setWeightStreamingBudget(budget)) << wrapperError();
    EXPECT_EQ(wrapper->weightStreamingBudget(), std::min(budget, all));
    EXPECT_EQ(wrapper->counts().contexts, before + 1);
    expect_sums();
  }
}

}  // namespace
}  // namespace lathe
