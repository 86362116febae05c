// SPDX-License-Identifier: Apache-2.0
// All of the CUDA layer on the stand-ins: source text is compiled, loaded, launched and replayed, and its numbers are
// right. With LATHE_TEST_GPU set, the same runs on the machine's GPU with NVIDIA's libraries (choose these tests alone:
// the driver is opened once per process).
#include "device/cuda/nvrtc_compiler.h"
#include "fake_cuda/fake_device.h"
#include "kernels/cuda/headers.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kSource = R"(
#include "lib/tensor.cuh"
LATHE_PARAMETERS(3)
LATHE_KERNEL(64, 1) void lathe_kernel(float* in, float* out, long count) {
  dependency_wait();
  const long i = (long)block_x() * 64 + thread_x();
  if (i < count) out[i] = 2 * in[i] + 1;
}
)";

class EmulatedStackTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    if (!on_gpu_) FakeDeviceTest::SetUp();
  }
  void TearDown() override {
    if (!on_gpu_) FakeDeviceTest::TearDown();
  }
  Result<std::vector<std::byte>> compile() {
    CompilerOptions options;
    if (!on_gpu_) options.nvrtc = {FAKE_NVRTC};
    LATHE_ASSIGN(const auto device, open_device(0));
    LATHE_ASSIGN(const auto compiler, NvrtcCompiler::create(device->target(), headers(), options, ""));
    return compiler->compile(kSource);
  }
  const bool on_gpu_ = std::getenv("LATHE_TEST_GPU") != nullptr;
};

TEST_F(EmulatedStackTest, CompilesLoadsRunsAndReplays) {
  const auto code = compile();
  ASSERT_OK(code);
  const auto device = *open_device(0);
  Launch launch;
  launch.entry = "lathe_kernel";
  launch.grid[0] = ceildiv(Expr::symbol(0), Expr(64));
  launch.block = 64;
  launch.overlaps = true;
  launch.args = {{LaunchArg::input, 0, {}}, {LaunchArg::output, 0, {}}, {LaunchArg::number, 0, Expr::symbol(0)}};
  const std::span<const std::byte> modules[] = {*code};
  StepRecord record;
  record.launches = {&launch, 1};
  record.code = modules;
  const auto kernel = device->make_kernel(record);
  ASSERT_OK(kernel);

  constexpr int64_t kCount = 1000;
  const auto memory = device->allocate(2 * kCount * sizeof(float));
  ASSERT_OK(memory);
  TensorArg in, out;
  in.data = memory->data();
  out.data = memory->data() + kCount * sizeof(float);
  const int64_t symbols[] = {kCount};
  const Operands operands{{&in, 1}, {&out, 1}, symbols};
  ASSERT_OK((*kernel)->prepare(operands, 1));
  const auto work = [&](Queue& on) { return (*kernel)->enqueue(operands, nullptr, on); };
  const auto graph = device->capture(work);
  ASSERT_OK(graph);

  const auto queue = *device->make_queue();
  for (const bool recorded : {false, true}) {
    std::vector<float> values(kCount);
    for (int64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i) + (recorded ? 0.5f : 0);
    ASSERT_OK(device->upload(in.data, values.data(), kCount * sizeof(float), *queue));
    {
      const QueueTurn turn = *QueueTurn::take(*queue);
      ASSERT_OK(recorded ? (*graph)->replay(*queue) : work(*queue));
    }
    std::vector<float> results(kCount);
    ASSERT_OK(device->download(results.data(), out.data, kCount * sizeof(float), *queue));
    for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(results[i], 2 * values[i] + 1) << i;
  }
}

TEST_F(EmulatedStackTest, TimesAreOfTheWork) {
  const auto code = compile();
  ASSERT_OK(code);
  const auto device = *open_device(0);
  Launch launch;
  launch.entry = "lathe_kernel";
  launch.block = 64;
  launch.args = {{LaunchArg::input, 0, {}}, {LaunchArg::input, 0, {}}, {LaunchArg::number, 0, Expr(64)}};
  const std::span<const std::byte> modules[] = {*code};
  StepRecord record;
  record.launches = {&launch, 1};
  record.code = modules;
  const auto kernel = device->make_kernel(record);
  ASSERT_OK(kernel);
  const auto memory = *device->allocate(64 * sizeof(float));
  TensorArg data;
  data.data = memory.data();
  const auto queue = *device->make_queue();
  const auto times = device->time(
      *queue,
      [&](Queue& on) {
        return (*kernel)->enqueue({{&data, 1}, {}, {}}, nullptr, on);
      },
      5);
  ASSERT_OK(times);
  ASSERT_EQ(times->size(), 5u);
  for (const double time : *times) {
    EXPECT_GT(time, 0);
    if (on_gpu_) {
      EXPECT_LT(time, 100) << "microseconds of one small kernel";
    }
  }
}

// S83, S84.
TEST_F(EmulatedStackTest, AFaultOfAKernelLosesTheDevice) {
  const auto code = compile();
  ASSERT_OK(code);
  const auto device = *open_device(0);
  Launch launch;
  launch.entry = "lathe_kernel";
  launch.block = 64;
  launch.args = {{LaunchArg::input, 0, {}}, {LaunchArg::output, 0, {}}, {LaunchArg::number, 0, Expr(64)}};
  const std::span<const std::byte> modules[] = {*code};
  StepRecord record;
  record.launches = {&launch, 1};
  record.code = modules;
  const auto made = device->make_kernel(record);
  ASSERT_OK(made);
  const Kernel& kernel = **made;
  TensorArg nowhere;
  const auto queue = *device->make_queue();
  const QueueTurn turn = *QueueTurn::take(*queue);
  Result<> ran = kernel.enqueue({{&nowhere, 1}, {&nowhere, 1}, {}}, nullptr, *queue);
  if (ran) ran = device->wait(*queue);
  EXPECT_FAILS(ran, device_fault);
  EXPECT_FAILS(device->allocate(1), device_lost);
}

}  // namespace
}  // namespace lathe::cuda
