// SPDX-License-Identifier: Apache-2.0
// The strategies of IRuntimeConfig on the stand-in GPU, through the public interface, with the library's own kernels.
#include <unistd.h>

#include "device/cuda/enqueue_fixture.h"

namespace lathe::cuda {
namespace {

using Specialization = nv::DynamicShapesKernelSpecializationStrategy;
using Graphs = nv::CudaGraphStrategy;

class StrategiesTest : public EnqueueTest {
 protected:
  void SetUp() override {
    EnqueueTest::SetUp();
    config_.reset(engine_->createRuntimeConfig());
    cache_.reset(config_->createRuntimeCache());
    ASSERT_TRUE(config_->setRuntimeCache(*cache_));
  }
  void TearDown() override {
    context_.reset();
    engine_.reset();
    config_.reset();
    cache_.reset();
    EnqueueTest::TearDown();
  }
  void make_context(Specialization specialization, Graphs graphs) {
    config_->setDynamicShapesKernelSpecializationStrategy(specialization);
    ASSERT_TRUE(config_->setCudaGraphStrategy(graphs));
    context_.reset(engine_->createExecutionContext(config_.get()));
    ASSERT_NE(context_, nullptr) << log_.text;
    context_->setTensorAddress("x", x_.data());
    context_->setTensorAddress("y", y_.data());
  }
  std::vector<float> results(int64_t rows) const {
    const auto* y = reinterpret_cast<const float*>(y_.data());
    return {y, y + rows * kOut};
  }
  int64_t cached(std::string_view what) const {
    const std::unique_ptr<nv::IHostMemory> json(runtimeCacheJson(*cache_));
    const std::string text(static_cast<const char*>(json->data()), json->size());
    const size_t at = text.find(fmt::format("\"{}\": ", what));
    return at == text.npos ? -1 : std::atoll(text.c_str() + at + what.size() + 4);
  }

  std::unique_ptr<nv::IRuntimeConfig> config_;
  std::unique_ptr<nv::IRuntimeCache> cache_;
};

// S187, S226: kernels with known sizes give the same bits as those for open sizes, and are kept in the runtime cache.
TEST_F(StrategiesTest, SpecialisedKernelsKeepTheBits) {
  std::map<int64_t, std::vector<float>> open;
  for (const int64_t rows : {1, 4, 7, 16}) {
    run(rows, static_cast<float>(rows));
    open[rows] = results(rows);
  }
  EXPECT_EQ(cached("compiled"), 0) << "contexts without a configuration specialise nothing";
  make_context(Specialization::kNONE, Graphs::kDISABLED);
  run(4, 4);
  EXPECT_EQ(cached("compiled"), 0);
  make_context(Specialization::kEAGER, Graphs::kDISABLED);
  for (const auto& [rows, wanted] : open) {
    run(rows, static_cast<float>(rows));
    EXPECT_EQ(results(rows), wanted) << rows;
  }
  const int64_t compiled = cached("compiled");
  EXPECT_GE(compiled, 8) << "two steps, four sizes";
  make_context(Specialization::kLAZY, Graphs::kWHOLE_GRAPH_CAPTURE);
  for (int round = 0; round < 4; ++round)
    for (const auto& [rows, wanted] : open) {
      run(rows, static_cast<float>(rows));
      EXPECT_EQ(results(rows), wanted) << rows;
    }
  EXPECT_EQ(cached("compiled"), compiled) << "they are there";
}

// Graphs of the sizes are made and go again, so that the driver has their memory before the first run.
TEST_F(StrategiesTest, GraphsTakeTheirMemoryWithTheContext) {
  for (const Graphs graphs : {Graphs::kDISABLED, Graphs::kWHOLE_GRAPH_CAPTURE}) {
    const size_t before = fake_cuda_calls(), launches = fake_cuda_launches();
    make_context(Specialization::kNONE, graphs);
    size_t made = 0, gone = 0, launched = 0;
    for (size_t i = before; i < fake_cuda_calls(); ++i) {
      const std::string_view call = fake_cuda_call(i);
      made += call.starts_with("cuGraphInstantiate");
      gone += call == "cuGraphExecDestroy";
      launched += call == "cuLaunchKernelEx";
    }
    const size_t sizes = graphs == Graphs::kDISABLED ? 0 : kMostRows;  // of the profile, from 1 on
    EXPECT_EQ(made, sizes);
    EXPECT_EQ(gone, sizes);
    EXPECT_EQ(launched, sizes > 0 ? 2 : 0) << "two steps, captured once";
    EXPECT_EQ(fake_cuda_launches(), launches) << "nothing has run";
    EXPECT_EQ(fake_cuda_live("executable"), 0);
    run(4, 4);
  }
}

TEST_F(StrategiesTest, WithoutMemoryForThemGraphsAreMadeAsLongAsThereIs) {
  for (const char* const function : {"cuGraphInstantiateWithFlags", "cuStreamEndCapture", "cuLaunchKernelEx"}) {
    const size_t before = fake_cuda_failures();
    fake_cuda_fail(function, 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
    make_context(Specialization::kNONE, Graphs::kWHOLE_GRAPH_CAPTURE);
    EXPECT_EQ(fake_cuda_failures(), before + 1) << function;
    EXPECT_EQ(fake_cuda_live("executable"), 0);
    for (int round = 0; round < 3; ++round) run(4, 4);
  }
}

// S224: of a new engine with the former one's cache.
TEST_F(StrategiesTest, ASecondStartCompilesNothing) {
  make_context(Specialization::kEAGER, Graphs::kDISABLED);
  for (const int64_t rows : {4, 7}) run(rows, 1);
  const int64_t compiled = cached("compiled");
  EXPECT_GT(compiled, 0);
  context_.reset();
  const std::unique_ptr<nv::IHostMemory> plan(engine_->serialize());
  engine_.reset(runtime_->deserializeCudaEngine(plan->data(), plan->size()));
  const std::unique_ptr<nv::IRuntimeConfig> config(engine_->createRuntimeConfig());
  EXPECT_EQ(config->getDynamicShapesKernelSpecializationStrategy(), Specialization::kLAZY);
  config_->setDynamicShapesKernelSpecializationStrategy(Specialization::kEAGER);
  config->setDynamicShapesKernelSpecializationStrategy(Specialization::kEAGER);
  ASSERT_TRUE(config->setRuntimeCache(*cache_));
  context_.reset(engine_->createExecutionContext(config.get()));
  context_->setTensorAddress("x", x_.data());
  context_->setTensorAddress("y", y_.data());
  for (const int64_t rows : {4, 7}) run(rows, 1);
  EXPECT_EQ(cached("compiled"), compiled);
}

// Whatever the strategies, an application may capture a run; the context captures nothing of its own
// meanwhile, and what the application replays is right.
TEST_F(StrategiesTest, AnApplicationMayCapture) {
  const Driver& cuda = **driver();
  for (const Specialization specialization : {Specialization::kLAZY, Specialization::kEAGER, Specialization::kNONE})
    for (const Graphs graphs : {Graphs::kDISABLED, Graphs::kWHOLE_GRAPH_CAPTURE}) {
      make_context(specialization, graphs);
      for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
      EXPECT_TRUE(context_->isStreamCapturable(reinterpret_cast<cudaStream_t>(stream_)));
      ASSERT_EQ(cuda.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
      const size_t before = fake_cuda_calls();
      EXPECT_TRUE(enqueue()) << log_.text;
      for (size_t i = before; i < fake_cuda_calls(); ++i) {
        EXPECT_STRNE(fake_cuda_call(i), "cuGraphLaunch");
        EXPECT_EQ(std::string_view(fake_cuda_call(i)).find("BeginCapture"), std::string_view::npos);
      }
      CUgraph graph = nullptr;
      CUgraphExec executable = nullptr;
      ASSERT_EQ(cuda.cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
      ASSERT_EQ(cuda.cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
      for (const float seed : {5.0F, 6.0F}) {
        fill(4, seed);
        ASSERT_EQ(cuda.cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
        expect_results(4);
      }
      cuda.cuGraphExecDestroy(executable);
      cuda.cuGraphDestroy(graph);
      run(4, 9);  // and the context's own runs go on
      run(7, 9);
    }
}

}  // namespace
}  // namespace lathe::cuda
