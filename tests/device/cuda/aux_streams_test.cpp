// SPDX-License-Identifier: Apache-2.0
// Independent branches on auxiliary streams of the stand-in GPU: what they compute, and in which order streams, events
// and graphs let the launches run.
#include <map>

#include "device/cuda/enqueue_fixture.h"

namespace lathe::cuda {
namespace {

constexpr int kBranches = 3, kLayers = 8;
constexpr int64_t kWidth = 8;

// y = the sum of branches of x, each of products and clips one behind the other.
class AuxStreamsTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    device_ = *open_device(0);
    x_ = *device_->allocate(kMostRows * kWidth * sizeof(float));
    y_ = *device_->allocate(kMostRows * kBranches * kWidth * sizeof(float));
    application_ = *device_->make_queue();
    ASSERT_OK(application_->begin());  // its context is current, as an application's is
    for (CUstream* stream : {&stream_, &aux_[0], &aux_[1]})
      ASSERT_EQ((*driver())->cuStreamCreate(stream, 0), CUDA_SUCCESS);
  }
  void TearDown() override {
    context_.reset();
    engine_.reset();
    runtime_.reset();
    memory_ = DeviceMemory();
    for (CUstream stream : {stream_, aux_[0], aux_[1]})
      if (stream) (*driver())->cuStreamDestroy(stream);
    application_->end();
    application_.reset();
    x_ = DeviceMemory();
    y_ = DeviceMemory();
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  static float weight(int branch, int layer, int64_t i) {
    return 0.5F * std::sin(static_cast<float>(100 * branch + 10 * layer) + static_cast<float>(i));
  }

  void make_engine(int32_t aux_streams) {
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(-1, kWidth));
    std::vector<nv::ITensor*> branches;
    for (int branch = 0; branch < kBranches; ++branch) {
      nv::ITensor* value = x;
      for (int layer = 0; layer < kLayers; ++layer) {
        std::vector<float>& w = weights_[{branch, layer}];
        w.clear();
        for (int64_t i = 0; i < kWidth * kWidth; ++i) w.push_back(weight(branch, layer, i));
        nv::ITensor* constant =
            network->addConstant(nv::Dims2(kWidth, kWidth), {nv::DataType::kFLOAT, w.data(), kWidth * kWidth})
                ->getOutput(0);
        value = network->addMatrixMultiply(*value, nv::MatrixOperation::kNONE, *constant, nv::MatrixOperation::kNONE)
                    ->getOutput(0);
        value = network->addActivation(*value, nv::ActivationType::kRELU)->getOutput(0);
      }
      branches.push_back(value);
    }
    nv::IConcatenationLayer* joined = network->addConcatenation(branches.data(), kBranches);
    joined->setAxis(1);
    joined->getOutput(0)->setName("y");
    network->markOutput(*joined->getOutput(0));
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    nv::IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", nv::OptProfileSelector::kMIN, nv::Dims2(1, kWidth));
    profile->setDimensions("x", nv::OptProfileSelector::kOPT, nv::Dims2(4, kWidth));
    profile->setDimensions("x", nv::OptProfileSelector::kMAX, nv::Dims2(kMostRows, kWidth));
    config->addOptimizationProfile(profile);
    config->clearFlag(nv::BuilderFlag::kTF32);
    config->setProfilingVerbosity(nv::ProfilingVerbosity::kDETAILED);
    ASSERT_TRUE(config->setMaxAuxStreams(aux_streams));
    setTarget(*config, "cuda");
    setBuildBudget(*config, 0);
    const std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr) << log_.text;
    runtime_.reset(nv::createInferRuntime(log_));
    engine_.reset(runtime_->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_NE(engine_, nullptr) << log_.text;
    context_.reset(engine_->createExecutionContext(nv::ExecutionContextAllocationStrategy::kUSER_MANAGED));
    ASSERT_NE(context_, nullptr) << log_.text;
    memory_ = *device_->allocate(static_cast<size_t>(engine_->getDeviceMemorySizeV2()));
    context_->setDeviceMemoryV2(memory_.data(), static_cast<int64_t>(memory_.size()));
    context_->setTensorAddress("x", x_.data());
    context_->setTensorAddress("y", y_.data());
  }

  bool enqueue() { return context_->enqueueV3(reinterpret_cast<cudaStream_t>(stream_)); }
  void fill(int64_t rows, float seed) {
    auto* x = reinterpret_cast<float*>(x_.data());
    for (int64_t i = 0; i < rows * kWidth; ++i) x[i] = std::cos(seed + static_cast<float>(i));
    ASSERT_TRUE(context_->setInputShape("x", nv::Dims2(rows, kWidth)));
  }
  void expect_results(int64_t rows) {
    const auto* x = reinterpret_cast<const float*>(x_.data());
    const auto* y = reinterpret_cast<const float*>(y_.data());
    for (int64_t r = 0; r < rows; ++r) {
      for (int branch = 0; branch < kBranches; ++branch) {
        std::vector<double> value(x + r * kWidth, x + (r + 1) * kWidth);
        for (int layer = 0; layer < kLayers; ++layer) {
          std::vector<double> next(kWidth);
          for (int64_t n = 0; n < kWidth; ++n) {
            for (int64_t k = 0; k < kWidth; ++k)
              next[static_cast<size_t>(n)] += value[static_cast<size_t>(k)] * weight(branch, layer, k * kWidth + n);
            next[static_cast<size_t>(n)] = std::max(next[static_cast<size_t>(n)], 0.0);
          }
          value = std::move(next);
        }
        for (size_t n = 0; n < kWidth; ++n) ASSERT_NEAR(*y++, value[n], 1e-4) << r;
      }
    }
  }
  void run(int64_t rows, float seed) {
    fill(rows, seed);
    ASSERT_TRUE(enqueue()) << log_.text;
    expect_results(rows);
  }

  // The first launch with an address of the context's memory is what writes there: whoever touches it later comes
  // behind that one. Gives how many pairs of launches may run at the same time.
  size_t expect_order(size_t first, size_t end) {
    const auto base = reinterpret_cast<uint64_t>(memory_.data());
    std::map<uint64_t, size_t> writers;
    size_t beside = 0;
    for (size_t i = first; i < end; ++i) {
      const fake_cuda_launch& launch = *fake_cuda_launched(i);
      for (unsigned p = 0; p < launch.parameters; ++p) {
        const uint64_t address = launch.values[p];
        if (address < base || address >= base + memory_.size()) continue;
        const auto [writer, is_new] = writers.emplace(address, i);
        if (!is_new && writer->second != i) {
          EXPECT_TRUE(fake_cuda_ordered(writer->second, i)) << writer->second << " " << i << " " << launch.name;
        }
      }
      for (size_t before = first; before < i; ++before) beside += fake_cuda_ordered(before, i) == 0;
    }
    return beside;
  }

  LastError log_;
  std::map<std::pair<int, int>, std::vector<float>> weights_;
  std::unique_ptr<nv::IRuntime> runtime_;
  std::unique_ptr<nv::ICudaEngine> engine_;
  std::unique_ptr<nv::IExecutionContext> context_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Queue> application_;
  DeviceMemory x_, y_, memory_;
  CUstream stream_ = nullptr, aux_[2] = {};
};

TEST_F(AuxStreamsTest, AreNotUsedUnlessAskedFor) {
  make_engine(0);
  EXPECT_EQ(engine_->getNbAuxStreams(), 0);
  const size_t before = fake_cuda_launches();
  run(4, 1);
  EXPECT_EQ(expect_order(before, fake_cuda_launches()), 0u);
}

TEST_F(AuxStreamsTest, RunBranchesBesideEachOther) {
  for (const int32_t most : {1, 2, 7}) {
    SCOPED_TRACE(most);
    make_engine(most);
    ASSERT_EQ(engine_->getNbAuxStreams(), std::min(most, kBranches - 1));
    size_t launches = 0;
    for (int i = 0; i < 4; ++i) {  // step by step, captured, and replayed
      const size_t before = fake_cuda_launches();
      run(4, static_cast<float>(i));
      EXPECT_GT(expect_order(before, fake_cuda_launches()), 0u) << i;
      if (i > 0) {
        EXPECT_EQ(fake_cuda_launches() - before, launches);
        EXPECT_TRUE(fake_cuda_ordered(before - 1, before));  // runs follow each other
      }
      launches = fake_cuda_launches() - before;
    }
    for (const int64_t rows : {1, 16, 7}) run(rows, static_cast<float>(rows));
  }
}

TEST_F(AuxStreamsTest, AreToldByTheInspector) {
  for (const int32_t most : {0, 1, 2}) {
    make_engine(most);
    const std::unique_ptr<nv::IEngineInspector> inspector(engine_->createEngineInspector());
    const std::string json = inspector->getEngineInformation(nv::LayerInformationFormat::kJSON);
    const std::string lines = inspector->getEngineInformation(nv::LayerInformationFormat::kONELINE);
    for (int stream = 0; stream < kBranches; ++stream) {
      const bool is_used = stream <= most;
      EXPECT_EQ(json.find(fmt::format("\"StreamId\": {}", stream)) != json.npos, is_used) << stream << json;
      EXPECT_EQ(lines.find(fmt::format("StreamId: {}", stream)) != lines.npos, is_used) << stream << lines;
    }
  }
}

TEST_F(AuxStreamsTest, MayBeTheApplications) {
  make_engine(2);
  cudaStream_t given[] = {reinterpret_cast<cudaStream_t>(aux_[0]), reinterpret_cast<cudaStream_t>(aux_[1])};
  context_->setAuxStreams(given, 2);
  size_t streams = fake_cuda_live("stream");
  run(4, 1);
  EXPECT_EQ(fake_cuda_live("stream"), streams);
  context_->setAuxStreams(given, 1);
  fill(5, 2);  // other shapes: not replayed
  ASSERT_TRUE(enqueue()) << log_.text;
  expect_results(5);
  EXPECT_EQ(fake_cuda_live("stream"), streams + 1);  // the other one is the context's own
}

TEST_F(AuxStreamsTest, AreRefusedWhereTheyWouldWaitForThemselves) {
  make_engine(2);
  cudaStream_t twice[] = {reinterpret_cast<cudaStream_t>(aux_[0]), reinterpret_cast<cudaStream_t>(aux_[0])};
  context_->setAuxStreams(twice, 2);
  EXPECT_NE(log_.text.find("auxiliary stream 1"), std::string::npos) << log_.text;
  cudaStream_t standard[] = {nullptr};
  context_->setAuxStreams(standard, 1);
  EXPECT_NE(log_.text.find("default stream"), std::string::npos) << log_.text;
  log_.text.clear();
  context_->setAuxStreams(nullptr, 1);
  EXPECT_NE(log_.text, "");
  log_.text.clear();
  context_->setAuxStreams(nullptr, -1);
  EXPECT_NE(log_.text, "");
  run(4, 1);
}

TEST_F(AuxStreamsTest, AreCapturedWithTheApplicationsStream) {
  make_engine(2);
  run(4, 1);
  const Driver& cuda = **driver();
  fill(4, 2);
  ASSERT_EQ(cuda.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  EXPECT_TRUE(enqueue()) << log_.text;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuda.cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  const size_t before = fake_cuda_launches();
  ASSERT_EQ(cuda.cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_GT(expect_order(before, fake_cuda_launches()), 0u);
  expect_results(4);
  cuda.cuGraphExecDestroy(executable);
  cuda.cuGraphDestroy(graph);
  run(4, 3);
}

TEST_F(AuxStreamsTest, FailuresLeaveTheContextUsable) {
  make_engine(2);
  int64_t rows = 0;
  for (const char* function : {"cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernelEx"})
    for (size_t nth = 1; nth <= 12; ++nth) {
      SCOPED_TRACE(fmt::format("{} {}", function, nth));
      const size_t failed = fake_cuda_failures();
      fake_cuda_fail(function, nth, CUDA_ERROR_OUT_OF_MEMORY, 0);
      for (int i = 0; i < 12 && fake_cuda_failures() == failed; ++i) {
        fill(1 + rows++ % kMostRows, 1);  // not replayed, then captured
        for (int run = 0; run < 2; ++run) {
          const bool worked = enqueue();
          EXPECT_TRUE(worked || fake_cuda_failures() != failed);  // without its mark a stream is waited for instead
          if (!worked) break;
        }
      }
      ASSERT_EQ(fake_cuda_failures(), failed + 1);
      run(1 + rows++ % kMostRows, 2);
    }
}

// What is made at the first run only.
TEST_F(AuxStreamsTest, FailuresToBeginAreToldAndNothingIsLost) {
  for (const char* function : {"cuStreamCreate", "cuEventCreate"})
    for (size_t nth = 1; nth <= 2; ++nth) {
      SCOPED_TRACE(fmt::format("{} {}", function, nth));
      make_engine(2);
      fake_cuda_fail(function, nth, CUDA_ERROR_OUT_OF_MEMORY, 0);
      fill(4, 1);
      EXPECT_FALSE(enqueue());
      run(4, 2);
    }
}

}  // namespace
}  // namespace lathe::cuda
