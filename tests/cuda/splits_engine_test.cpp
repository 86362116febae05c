// SPDX-License-Identifier: Apache-2.0
// Engines whose products are split over blocks, on the stand-in driver: counters are zero whenever a launch begins.
#include <algorithm>

#include "build/engine_fixture.h"
#include "cuda/emulated_device.h"
#include "cuda/fake_device.h"
#include "device/cuda/driver.h"
#include "kernels/cuda/cuda_tactics.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kIn = 512, kOut = 24, kMostRows = 40;

size_t calls_of(std::string_view function) {
  size_t count = 0;
  for (size_t i = 0; i < fake_cuda_calls(); ++i) count += fake_cuda_call(i) == function;
  return count;
}

// y = relu(x w + b)
constexpr const char* kText = R"(graph "g" {
    symbol n in [1, 40]
    input %x: f32[n, 512]
    %w = constant{value=f32[512, 24]{~1}}()
    %b = constant{value=f32[24]{~2}}()
    %p = matmul(%x, %w)
    %q = elementwise{op=add}(%p, %b)
    %y = activation{op=relu}(%q)
    output %y
  })";

class SplitsEngineTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    device_ = *open_device(0);
    build();
    ASSERT_NE(engine_, nullptr);
    ASSERT_TRUE(std::any_of(engine_->plan().steps.begin(), engine_->plan().steps.end(),
                            [](const plan::Step& step) { return !(step.counters == Expr(0)); }));
    x_ = *device_->allocate(kMostRows * kIn * sizeof(float));
    y_ = *device_->allocate(kMostRows * kOut * sizeof(float));
  }
  void TearDown() override {
    engine_.reset();
    x_ = DeviceMemory();
    y_ = DeviceMemory();
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  void build() {
    graph_ = ir::parse_graph(kText);
    ASSERT_OK(graph_);
    const std::unique_ptr<Compiler> compiler = make_emulated_compiler();
    BuildOptions options;
    options.tactics = cuda_tactics();
    options.target = device_->target();
    options.fuse_narrow_types = options.fuse_prologues = true;
    options.tuner.compiler = compiler.get();
    options.tuner.budget_seconds = 0;
    Result<ir::Graph> copy = ir::parse_graph(kText);
    ASSERT_OK(copy);
    Result<std::unique_ptr<BuiltPlan>> built = build_plan(*std::move(copy), options);
    ASSERT_OK(built);
    Result<std::vector<std::byte>> bytes = plan::write_plan((*built)->plan);
    ASSERT_OK(bytes);
    engine_ = load_engine(*std::move(bytes), device_);
  }

  std::unique_ptr<lathe::Context> make_context(bool user_memory = false) {
    std::unique_ptr<lathe::Context> context = *lathe::Context::create(engine_, user_memory);
    EXPECT_TRUE(context->set_address(0, x_.data()));
    EXPECT_TRUE(context->set_address(1, y_.data()));
    return context;
  }
  // The stand-in's memory is the host's.
  void prepare(lathe::Context& context, int64_t rows) {
    const Dims dims{rows, kIn};
    ASSERT_OK(context.set_input_dims(0, dims));
    const Tensor x = random_tensor(DType::f32, dims, 5);
    std::memcpy(x_.data(), x.data(), x.bytes());
    std::memset(y_.data(), 0xff, y_.size());
  }
  void expect_results(int64_t rows) {
    const Tensor x = random_tensor(DType::f32, {rows, kIn}, 5);
    const auto expected = ir::interpret(*graph_, std::span(&x, 1));
    ASSERT_OK(expected);
    const auto* got = reinterpret_cast<const float*>(y_.data());
    for (int64_t i = 0; i < rows * kOut; ++i)
      ASSERT_NEAR(got[i], (*expected)[0].at_double(i), 1e-3) << i << " of " << rows << " rows";
    std::vector<float>& first = results_[rows];
    if (first.empty()) first.assign(got, got + rows * kOut);
    EXPECT_EQ(std::memcmp(first.data(), got, first.size() * sizeof(float)), 0) << "other bits";
  }
  void run(lathe::Context& context, int64_t rows) {
    prepare(context, rows);
    ASSERT_OK(context.run());
    expect_results(rows);
  }

  Result<ir::Graph> graph_ = ir::Graph();
  std::shared_ptr<Device> device_;
  std::shared_ptr<const Engine> engine_;
  DeviceMemory x_, y_;
  std::map<int64_t, std::vector<float>> results_;  // of the first run, by rows
};

TEST_F(SplitsEngineTest, EveryRunGivesTheSameBits) {
  const std::unique_ptr<lathe::Context> context = make_context();
  for (const int64_t rows : {20, 20, 20, 3, 40, 20, 20, 1, 40}) run(*context, rows);
  EXPECT_EQ(calls_of("cuMemsetD8Async"), 1u);  // once for the context, not for each run
}

TEST_F(SplitsEngineTest, SuppliedMemoryMayHoldAnything) {
  const std::unique_ptr<lathe::Context> context = make_context(true);
  for (const int64_t rows : {20, 20, 20, 40, 3}) {
    prepare(*context, rows);
    const auto bytes = context->memory_bytes();
    ASSERT_OK(bytes);
    const DeviceMemory memory = *device_->allocate(*bytes);
    std::memset(memory.data(), 0xA5, memory.size());
    ASSERT_OK(context->set_memory(memory.data(), memory.size()));
    for (int i = 0; i < 3; ++i) {
      run(*context, rows);
      std::memset(memory.data(), 0x5A + i, memory.size());
    }
  }
}

TEST_F(SplitsEngineTest, ContextsDoNotShareCounters) {
  const std::unique_ptr<lathe::Context> a = make_context(), b = make_context();
  for (int i = 0; i < 3; ++i) {
    run(*a, 20);
    run(*b, 20);
  }
  EXPECT_EQ(calls_of("cuMemsetD8Async"), 2u);
}

TEST_F(SplitsEngineTest, ClearingMayFail) {
  for (const char* call : {"cuMemsetD8Async", "cuMemAllocAsync"}) {
    const std::unique_ptr<lathe::Context> context = make_context();
    prepare(*context, 20);
    fake_cuda_fail(call, 1, 2, 0);
    EXPECT_FAILS(context->run(), out_of_memory);
    run(*context, 20);
    run(*context, 20);
  }
}

TEST_F(SplitsEngineTest, RunsThatFailLeaveNothingCounted) {
  const std::unique_ptr<lathe::Context> context = make_context();
  run(*context, 20);
  prepare(*context, 3);
  fake_cuda_fail("cuLaunchKernelEx", 1, 2, 0);
  EXPECT_FALSE(context->run());
  EXPECT_EQ(calls_of("cuMemsetD8Async"), 2u);
  run(*context, 3);
  run(*context, 20);
}

TEST_F(SplitsEngineTest, CapturedWorkIsReplayed) {
  const std::unique_ptr<lathe::Context> context = make_context();
  const Driver& driver = **cuda::driver();
  const auto application = *device_->make_queue();
  const QueueTurn turn = *QueueTurn::take(*application);  // its context is current, as an application's is
  CUstream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  prepare(*context, 20);
  ASSERT_EQ(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_OK(context->enqueue(stream));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(driver.cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    std::memset(y_.data(), 0xff, y_.size());
    ASSERT_EQ(driver.cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    expect_results(20);
  }
  driver.cuGraphExecDestroy(executable);
  driver.cuGraphDestroy(graph);
  ASSERT_OK(context->enqueue(stream));
  expect_results(20);
  driver.cuStreamDestroy(stream);
}

// A plan of one launch of `count`(counters), with 1024 bytes of them for each row of its input.
class CountersTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    device_ = *open_device(0);
  }
  plan::Plan make_plan() {
    plan::Plan plan;
    plan.target = device_->target();
    plan.symbols = {{"n", SymbolSource::input_dim, 0, 0, {1, 1 << 20}}};
    plan.profiles = {{{{1, 1, 1 << 20}}}};
    for (const bool is_input : {true, false}) {
      plan::Tensor& tensor = plan.tensors.emplace_back();
      tensor.dims = {Expr::symbol(0)};
      tensor.storage = plan::StorageKind::binding;
      tensor.index = is_input ? 0 : 1;
      plan::Binding& binding = plan.bindings.emplace_back();
      binding.name = is_input ? "x" : "y";
      binding.is_input = is_input;
      binding.tensor = tensor.index;
    }
    plan.codes = {code_};
    plan::Step& step = plan.steps.emplace_back();
    step.kernel = "count";
    step.inputs = {0};
    step.outputs = {1};
    step.counters = Expr::symbol(0) * 1024;
    Launch& launch = step.launches.emplace_back();
    launch.entry = "count";
    launch.block = 32;
    launch.args = {{LaunchArg::counters, 0, 0}, {LaunchArg::counters, 0, 8 * Expr::symbol(0)}};
    return plan;
  }

  std::shared_ptr<Device> device_;
  const std::vector<std::byte> code_ = bytes_of("FAKE_CUBIN sm_90\nkernel count 2\n");
};

TEST_F(CountersTest, GrowWithTheShapesAndAreZero) {
  Result<std::vector<std::byte>> bytes = plan::write_plan(make_plan());
  ASSERT_OK(bytes);
  const std::shared_ptr<const Engine> engine = load_engine(*std::move(bytes), std::exchange(device_, nullptr));
  ASSERT_NE(engine, nullptr);
  const std::unique_ptr<lathe::Context> context = *lathe::Context::create(engine);
  std::vector<float> x(1000), y(1000);
  ASSERT_OK(context->set_address(0, x.data()));
  ASSERT_OK(context->set_address(1, y.data()));
  std::vector<const std::byte*> places;
  for (const int64_t rows : {4, 100, 60, 4, 400}) {
    ASSERT_OK(context->set_input_dims(0, Dims{rows}));
    ASSERT_OK(context->run());
    const fake_cuda_launch& launch = *fake_cuda_launched(fake_cuda_launches() - 1);
    EXPECT_EQ(launch.values[1], launch.values[0] + static_cast<uint64_t>(8 * rows));
    const auto* counters = reinterpret_cast<const std::byte*>(launch.values[0]);
    const auto size = static_cast<size_t>(1024 * rows);
    ASSERT_TRUE(fake_cuda_holds(counters, size)) << rows;
    EXPECT_EQ(std::count(counters, counters + size, std::byte{0}), 1024 * rows);
    places.push_back(counters);
  }
  EXPECT_NE(places[0], places[1]);
  EXPECT_EQ(places[1], places[2]);
  EXPECT_EQ(places[1], places[3]);
  EXPECT_NE(places[1], places[4]);
  for (const std::byte* place : places) EXPECT_TRUE(fake_cuda_holds(place, 4096)) << "a captured graph may use it";
}

TEST_F(CountersTest, SizesWithoutAValueAreRefused) {
  plan::Plan plan = make_plan();
  plan.steps[0].counters = Expr::symbol(0) * (int64_t{1} << 30);
  Result<std::vector<std::byte>> bytes = plan::write_plan(plan);
  ASSERT_OK(bytes);
  const std::shared_ptr<const Engine> engine = load_engine(*std::move(bytes), std::exchange(device_, nullptr));
  ASSERT_NE(engine, nullptr);
  const std::unique_ptr<lathe::Context> context = *lathe::Context::create(engine);
  std::vector<float> x(2), y(2);
  ASSERT_OK(context->set_address(0, x.data()));
  ASSERT_OK(context->set_address(1, y.data()));
  ASSERT_OK(context->set_input_dims(0, Dims{2}));
  EXPECT_FAILS(context->run(), launch_refused);
}

}  // namespace
}  // namespace lathe::cuda
