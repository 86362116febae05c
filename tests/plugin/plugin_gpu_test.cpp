// SPDX-License-Identifier: Apache-2.0
// Plugins in engines for GPUs, on the stand-in driver.
#include "fake_cuda/fake_device.h"
#include "plugin_fixture.h"

namespace nvinfer1 {
namespace {

std::atomic<int> g_enqueued{0};  // enqueue() calls
std::atomic<int> g_failed{0};    // of the work that they gave to streams

// Gives its work to the stream, as plugins launch kernels: a graph that holds it runs it, and not enqueue(), again.
template <class P>
class OnStream final : public P {
 public:
  using P::P;
  HostPlugin* copy() const override { return new OnStream(*this); }
  int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc* out, const void* const* inputs,
                  void* const* outputs, void* workspace, cudaStream_t stream) noexcept override {
    ++g_enqueued;
    if (this->lie_ == Lie::enqueue_fails || this->on_host_) return 8;
    if (!fake_cuda_holds(inputs[0], bytes(in[0])) || !fake_cuda_holds(outputs[0], bytes(in[0]))) return 13;
    if (!fake_cuda_holds(workspace, 64) || reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return 10;
    if (this->lie_ == Lie::waits_on_stream || this->lie_ == Lie::hides_waiting) {
      const auto waited =
          (*lathe::cuda::driver())->cuStreamSynchronize(reinterpret_cast<lathe::cuda::CUstream>(stream));
      if (waited != lathe::cuda::CUDA_SUCCESS && this->lie_ == Lie::waits_on_stream) return 14;
    }
    for (int i = 0; i < (this->is_slow() ? 3 : 1); ++i) {
      auto* work = new Work{
          this,
          {in, in + 1},
          {out, out + this->outputs()},
          std::vector<const void*>(inputs, inputs + 1),
          std::vector<void*>(outputs, outputs + this->outputs())};  // in braces, pointers would be the elements
      static const char kind = 0;
      if (const int failed = fake_cuda_submit(stream, &kind, &Work::run, work, &Work::release)) return failed;
    }
    return 0;
  }

 private:
  struct Work {
    OnStream* plugin;
    std::vector<PluginTensorDesc> in, out;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    static void run(void* user) {
      auto& work = *static_cast<Work*>(user);
      if (work.plugin->P::run(work.in.data(), work.out.data(), work.inputs.data(), work.outputs.data()) != 0)
        ++g_failed;
    }
    static void release(void* user) { delete static_cast<Work*>(user); }
  };
  static size_t bytes(const PluginTensorDesc& desc) {
    return static_cast<size_t>(HostPlugin::volume(desc.dims)) * sizeof(float);
  }
};

// Before the fixture's builder looks for a device.
struct StandInDriver {
  StandInDriver() {
    setenv("LATHE_CUDA_DRIVER", FAKE_CUDA_DRIVER, 1);
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    fake_cuda_reset();
  }
};

class PluginOnGpu : StandInDriver, public PluginV3 {
 protected:
  void SetUp() override {
    PluginV3::SetUp();
    IPluginRegistry& registry = runtime->getPluginRegistry();
    ASSERT_TRUE(registry.registerCreator(scale_on_gpu_, "test"));
    ASSERT_TRUE(registry.registerCreator(nonzero_on_gpu_, "test"));
    ASSERT_TRUE(registry.registerCreator(in_place_on_gpu_, "test"));
    ASSERT_TRUE(registry.registerCreator(tactic_on_gpu_, "test"));
    g_enqueued = g_failed = 0;
  }
  void TearDown() override {
    EXPECT_EQ(g_failed, 0);
    context.reset(), engine.reset(), plan.reset(), runtime.reset();
    config.reset(), network.reset(), builder.reset();
    EXPECT_EQ(g_alive, alive_);
    lathe::releaseIdleDevices();
    for (const char* kind : lathe::cuda::kLiveKinds) EXPECT_EQ(fake_cuda_live(kind), 0u) << kind << " leaked";
  }
  const char* target() const override { return "cuda"; }

  // Each run of these rows at the same addresses.
  std::vector<float> run_again(const std::vector<float>& x) {
    given_ = x;
    std::fill(found_.begin(), found_.end(), -77.0F);
    EXPECT_TRUE(context->setInputShape("x", Dims2(static_cast<int64_t>(x.size()) / 3, 3)));
    EXPECT_TRUE(context->setTensorAddress("x", given_.data()) && context->setTensorAddress("y0", found_.data()));
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    return {found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(x.size())};
  }

  TestCreator<OnStream<ScalePlugin>> scale_on_gpu_{"GpuScale"};
  TestCreator<OnStream<NonzeroPlugin>> nonzero_on_gpu_{"GpuNonzero"};
  TestCreator<OnStream<InPlacePlugin>> in_place_on_gpu_{"GpuInPlace"};
  TestCreator<OnStream<TacticPlugin>> tactic_on_gpu_{"GpuTactic"};
  std::vector<float> given_, found_ = std::vector<float>(18);
};

TEST_F(PluginOnGpu, IsGivenMemoryOfTheDeviceAndCaptured) {
  OnStream<ScalePlugin> plugin("GpuScale", 2, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  given_.reserve(18);
  for (const float first : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F})
    EXPECT_EQ(run_again({first, 10, 20}), (std::vector<float>{2 * first, 20, 40}));
  EXPECT_EQ(g_enqueued, 2) << "once as it is, once for the graph that the other runs replay";
  EXPECT_EQ(run_again({1, 2, 3, 4, 5, 6}), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(g_enqueued, 3);
  EXPECT_TRUE(logger.warnings.empty()) << logger.warnings.front();
}

// What a plugin does may be forbidden while a stream is captured: the run goes on without a graph, and says so once.
TEST_F(PluginOnGpu, MayBreakACapture) {
  for (const Lie lie : {Lie::waits_on_stream, Lie::hides_waiting}) {
    logger.warnings.clear();
    network.reset(builder->createNetworkV2(0)), config.reset(builder->createBuilderConfig());
    lathe::setTarget(*config, target());
    OnStream<ScalePlugin> plugin("GpuScale", 2, lie);
    ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
    given_.reserve(18);
    for (const float first : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F})
      EXPECT_EQ(run_again({first, 10, 20}), (std::vector<float>{2 * first, 20, 40}));
    for (int round = 0; round < 3; ++round)
      EXPECT_EQ(run_again({1, 2, 3, 4, 5, 6}), (std::vector<float>{2, 4, 6, 8, 10, 12}));
    ASSERT_EQ(logger.warnings.size(), 1u);
    EXPECT_NE(logger.warnings[0].find("cannot be captured in a CUDA graph"), std::string::npos) << logger.warnings[0];
    EXPECT_TRUE(logger.errors.empty()) << logger.last();
    context.reset();
  }
}

TEST_F(PluginOnGpu, LiesBetweenKernels) {
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(2, 3));
  ITensor* positive = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
  OnStream<ScalePlugin> plugin("GpuScale", -2, Lie::none);
  ITensor* scaled = network->addPluginV3(&positive, 1, nullptr, 0, plugin)->getOutput(0);
  ITensor* y = network->addElementWise(*scaled, *positive, ElementWiseOperation::kSUM)->getOutput(0);
  y->setName("y0");
  network->markOutput(*y);
  ASSERT_TRUE(build() && load()) << logger.last();
  given_.reserve(18);
  for (const float first : {1.0F, 2.0F, 3.0F, 4.0F})
    EXPECT_EQ(run_again({first, -1, 2, -3, 4, -5}), (std::vector<float>{-first, 0, -2, 0, -4, 0}));
  EXPECT_EQ(g_enqueued, 2);
}

TEST_F(PluginOnGpu, FindsOutSizes) {
  OnStream<NonzeroPlugin> plugin("GpuNonzero", 0, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(run({0, 5, 0, 1, 0, 2})) << logger.last();
    EXPECT_EQ(result<int64_t>("y1"), std::vector<int64_t>{3});
    EXPECT_EQ(result<int32_t>("y0"), (std::vector<int32_t>{0, 1, 1, 0, 1, 2}));
    ASSERT_TRUE(run({0, 0, 0})) << logger.last();
    EXPECT_EQ(allocators_["y0"].dims.d[0], 0);
  }
}

TEST_F(PluginOnGpu, ChangesACopyInPlace) {
  config->setPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03, true);
  OnStream<InPlacePlugin> plugin("GpuInPlace", 10, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  given_.reserve(18);
  for (const float first : {1.0F, 2.0F, 3.0F, 4.0F}) {
    EXPECT_EQ(run_again({first, 2, 3}), (std::vector<float>{first + 10, 12, 13}));
    EXPECT_EQ(given_, (std::vector<float>{first, 2, 3}));
  }
}

TEST_F(PluginOnGpu, RunsTheTacticThatWasFastest) {
  OnStream<TacticPlugin> plugin("GpuTactic", 0, Lie::none);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  EXPECT_EQ(run_again({1, 2, 3}), (std::vector<float>{3, 3, 3}));
}

TEST_F(PluginOnGpu, FailsTheRunInItsOwnWords) {
  OnStream<ScalePlugin> plugin("GpuScale", 2, Lie::enqueue_fails);
  ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
  for (int round = 0; round < 3; ++round) {
    logger.errors.clear();
    EXPECT_FALSE(run({1, 2, 3}));
    ASSERT_EQ(logger.errors.size(), 1u);
    EXPECT_NE(logger.last().find("enqueue() gives 8"), std::string::npos) << logger.last();
  }
}

// y = x, by the driver's own copy. With LATHE_TEST_GPU set it runs on the machine's GPU (choose this test alone: the
// driver is opened once per process).
class CopyPlugin final : public HostPlugin {
 public:
  using HostPlugin::HostPlugin;
  HostPlugin* copy() const override { return new CopyPlugin(*this); }
  int32_t run(const PluginTensorDesc*, const PluginTensorDesc*, const void* const*, void* const*) noexcept override {
    return 0;
  }
  int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc*, const void* const* inputs, void* const* outputs,
                  void* workspace, cudaStream_t stream) noexcept override {
    ++g_enqueued;
    if (on_host_ || reinterpret_cast<uintptr_t>(workspace) % 256 != 0 || !workspace) return 10;
    const lathe::cuda::Driver& driver = **lathe::cuda::driver();
    const auto on = reinterpret_cast<lathe::cuda::CUstream>(stream);
    if (lie_ == Lie::waits_on_stream && driver.cuStreamSynchronize(on) != lathe::cuda::CUDA_SUCCESS) return 14;
    if (lie_ == Lie::hides_waiting) (void)driver.cuStreamSynchronize(on);
    const auto address = [](const void* at) { return reinterpret_cast<lathe::cuda::CUdeviceptr>(at); };
    const size_t bytes = static_cast<size_t>(volume(in[0].dims)) * sizeof(float);
    return static_cast<int32_t>(driver.cuMemcpyAsync(address(outputs[0]), address(inputs[0]), bytes, on));
  }
};

struct AnyDriver {
  AnyDriver() {
    if (is_gpu) return;
    setenv("LATHE_CUDA_DRIVER", FAKE_CUDA_DRIVER, 1);
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    fake_cuda_reset();
  }
  const bool is_gpu = std::getenv("LATHE_TEST_GPU") != nullptr;
};

class PluginOnAnyGpu : AnyDriver, public PluginV3 {
 protected:
  const char* target() const override { return "cuda"; }
};

TEST_F(PluginOnAnyGpu, IsCapturedUnlessItWaits) {
  TestCreator<CopyPlugin> creator("Copy");
  ASSERT_TRUE(runtime->getPluginRegistry().registerCreator(creator, "test"));
  for (const Lie lie : {Lie::none, Lie::waits_on_stream, Lie::hides_waiting}) {
    SCOPED_TRACE(static_cast<int>(lie));
    logger.warnings.clear();
    g_enqueued = 0;
    network.reset(builder->createNetworkV2(0)), config.reset(builder->createBuilderConfig());
    lathe::setTarget(*config, target());
    CopyPlugin plugin("Copy", 0, lie);
    ASSERT_TRUE(add(plugin) && build() && load()) << logger.last();
    std::vector<float> x(6), y(6);
    for (int round = 0; round < 6; ++round) {
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(round * 10) + static_cast<float>(i);
      std::fill(y.begin(), y.end(), -77.0F);
      ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)) && context->setTensorAddress("x", x.data()) &&
                  context->setTensorAddress("y0", y.data()) && context->enqueueV3(nullptr))
          << logger.last();
      EXPECT_EQ(y, x);
    }
    EXPECT_EQ(g_enqueued, lie == Lie::none ? 2 : 7) << "the seventh is the capture that failed";
    EXPECT_EQ(logger.warnings.size(), lie == Lie::none ? 0u : 1u);
    EXPECT_TRUE(logger.errors.empty()) << logger.last();
    context.reset(), engine.reset();
  }
  network.reset(), runtime.reset();
}

}  // namespace
}  // namespace nvinfer1
