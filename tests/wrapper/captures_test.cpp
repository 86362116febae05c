// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: the wrapper's own, and the caller's around a run.
#include "wrapper/wrapper_world.h"

namespace lathe {
namespace {

class CapturesTest : public WrapperTest {
 protected:
  void SetUp() override {
    if (!nv::on_gpu()) GTEST_SKIP() << "a CPU has no graphs";
    WrapperTest::SetUp();
  }
  // The caller's graph of one run, launched with two other inputs.
  void expect_caller_can_capture(EngineWrapper& wrapper) {
    AppStream stream;
    Batch batch(4);
    const std::shared_ptr<void> memory = shared_memory(64);
    OutputTensor mine;
    mine.name = "y";
    mine.data = memory.get();
    mine.bytes = 64;
    std::vector<OutputTensor> outputs{mine};
    stream.begin_capture();
    ASSERT_TRUE(wrapper.run({batch.input()}, outputs, stream.get())) << wrapperError();
    stream.end_capture();
    for (const float first : {5.0F, -3.0F}) {
      batch.fill(first);
      stream.launch();
      stream.wait();
      batch.expect(mine);
    }
  }
};

// One graph per row of equal sizes; a new one where they change, none is kept
// where graphs are turned off.
TEST_F(CapturesTest, RunsAreRecorded) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap({"", "none", "disabled"});
  ASSERT_TRUE(wrapper->setCudaGraphs(true));
  const auto run = [&](int64_t rows, cudaStream_t stream) { expect_right(*wrapper, Batch(rows, 2), stream); };
  const auto expect_counts = [&](int64_t recorded, int64_t replays) {
    EXPECT_EQ(wrapper->counts().graphsRecorded, recorded);
    EXPECT_EQ(wrapper->counts().graphReplays, replays);
  };
  AppStream stream, other;
  run(4, stream.get());
  run(4, stream.get());
  expect_counts(1, 2);
  run(4, nullptr);
  run(4, other.get());
  expect_counts(1, 4);
  run(8, stream.get());
  run(4, stream.get());
  expect_counts(3, 6);
  ASSERT_TRUE(wrapper->setCudaGraphs(false));
  run(4, stream.get());
  expect_counts(3, 6);
  ASSERT_TRUE(wrapper->setCudaGraphs(true));
  run(4, stream.get());
  expect_counts(4, 7);
  ASSERT_TRUE(wrapper->setResourceAllocation(ResourceAllocation::kDYNAMIC));  // another context
  run(4, stream.get());
  run(4, stream.get());
  expect_counts(5, 9);
  ASSERT_TRUE(wrapper->setProfiling(true));
  run(4, stream.get());
  expect_counts(5, 9);
}

// S212, S213: kernels that are specialised in the background are not recorded
// where sizes are open, and are where none is.
TEST_F(CapturesTest, LazyKernelsOfOpenSizesAreNotRecorded) {
  const std::unique_ptr<EngineWrapper> open = wrap();
  AppStream stream;
  ASSERT_TRUE(open->setCudaGraphs(true));
  listen(nv::ILogger::Severity::kWARNING);
  for (int run = 0; run < 2; ++run) expect_right(*open, Batch(4), stream.get());
  EXPECT_EQ(open->counts().graphsRecorded, 0);
  EXPECT_EQ(lines_with("'lazy'").size(), 1u) << "said once";
  EXPECT_FALSE(open->isStreamCapturable(stream.get()));

  network.reset(builder->createNetworkV2(0));
  config.reset(builder->createBuilderConfig());
  setBuildBudget(*config, 0);
  nv::ITensor* const x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(4, 3));
  nv::ITensor* const y = network->addActivation(*x, nv::ActivationType::kRELU)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  const std::unique_ptr<EngineWrapper> closed = wrap();
  EXPECT_FALSE(closed->dynamicInputs());
  ASSERT_TRUE(closed->setCudaGraphs(true));
  const Batch batch(4);
  for (int run = 0; run < 2; ++run) {
    std::vector<OutputTensor> outputs;
    ASSERT_TRUE(closed->run({batch.input()}, outputs, stream.get())) << wrapperError();
    EXPECT_EQ(std::memcmp(values_of<float>(outputs[0], stream.get()).data(), batch.x, 48), 0);
  }
  EXPECT_EQ(closed->counts().graphsRecorded, 1);
  EXPECT_TRUE(closed->isStreamCapturable(stream.get()));
}

// S213, S230: the caller's capture holds the steps, whether the wrapper records
// graphs or not.
TEST_F(CapturesTest, TheCallerCaptures) {
  for (const bool graphs : {false, true})
    for (const ResourceAllocation allocation : {ResourceAllocation::kSTATIC, ResourceAllocation::kDYNAMIC}) {
      EngineFields fields = fields_of();
      fields.allocation = allocation;
      const std::unique_ptr<EngineWrapper> wrapper = wrap(plan(), fields, {"", "none", "disabled"});
      ASSERT_TRUE(wrapper->setCudaGraphs(graphs));
      expect_right(*wrapper, Batch(4));
      const WrapperCounts before = wrapper->counts();
      expect_caller_can_capture(*wrapper);
      EXPECT_EQ(wrapper->counts().graphReplays, before.graphReplays);
      EXPECT_EQ(wrapper->counts().contexts, before.contexts);
      expect_right(*wrapper, Batch(8));
    }
}

// S231: graphs of the runtime give way to the caller's, once and for all, with
// one warning that names the engine.
TEST_F(CapturesTest, TheRuntimeGivesWay) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap({"", "none", "whole_graph_capture"});
  for (int run = 0; run < 3; ++run) expect_right(*wrapper, Batch(4));
  listen(nv::ILogger::Severity::kWARNING);
  for (int capture = 0; capture < 2; ++capture) expect_caller_can_capture(*wrapper);
  const std::vector<std::string> said = lines_with("rest of this engine's lifetime");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("'model_small'"), std::string::npos);
  EXPECT_EQ(wrapper->settings().cudaGraphs, "disabled");
  EXPECT_EQ(wrapper->counts().contexts, 2);
  expect_right(*wrapper, Batch(2));
}

// While a stream is captured, what would have to be copied from elsewhere is
// refused, and the capture goes on.
TEST_F(CapturesTest, InputsMustBeOnTheDevice) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap({"", "none", "disabled"});
  AppStream stream;
  const Batch batch(4);
  std::vector<OutputTensor> outputs;
  stream.begin_capture();
  expect_refused(wrapper->run({batch.input(kHost)}, outputs, stream.get()), "LATHE-6106", {"'x'", "captured"});
  ASSERT_TRUE(wrapper->run({batch.input()}, outputs, stream.get())) << wrapperError();
  stream.end_capture();
  stream.launch();
  stream.wait();
  batch.expect(outputs[0]);
}

// What the driver refuses while a graph is recorded leaves a run without one.
TEST_F(CapturesTest, AFailureWhileRecording) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap({"", "none", "disabled"});
  ASSERT_TRUE(wrapper->setCudaGraphs(true));
  AppStream stream;
  if (nv::on_real_gpu()) GTEST_SKIP() << "real drivers do not fail when told to";
  auto* const fail_next = driver_function<void(const char*, size_t, int, int)>("fake_cuda_fail");
  constexpr int kOutOfMemory = 2, kNotSticky = 0;
  fail_next("cuGraphInstantiateWithFlags", 1, kOutOfMemory, kNotSticky);
  listen(nv::ILogger::Severity::kWARNING);
  for (int run = 0; run < 3; ++run) expect_right(*wrapper, Batch(4, static_cast<float>(run)), stream.get());
  EXPECT_EQ(wrapper->counts().graphsRecorded, 0);
  EXPECT_EQ(lines_with("no graph is recorded").size(), 1u);
  expect_right(*wrapper, Batch(8), stream.get());
  EXPECT_EQ(wrapper->counts().graphsRecorded, 1) << "other sizes are tried";
}

}  // namespace
}  // namespace lathe
