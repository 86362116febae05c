// SPDX-License-Identifier: Apache-2.0
// The driver fails in each of its calls in turn: errors are reported, nothing leaks, nothing hangs, nothing stale is
// given out; and other devices are not affected.
#include <atomic>
#include <set>
#include <thread>

#include "device/cuda/launch_case.h"
#include "device/event.h"
#include "fake_cuda/fake_device.h"

namespace lathe::cuda {
namespace {

constexpr int kIllegalAddress = 700;
constexpr int kUnknownFailure = 4711;

void add_one(void** parameters, const unsigned[3], void*) {
  const int* in = *static_cast<int**>(parameters[0]);
  int* out = *static_cast<int**>(parameters[1]);
  *out = *in + 1;
}

class FailuresTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    fake_cuda_set_kernel("add", add_one, nullptr);
  }

  // What an engine does: load weights and code, run, run as a graph, take up new shapes, and go.
  Result<int> run_engine() {
    LATHE_ASSIGN(const auto device, open_device(0));
    LATHE_ASSIGN(const auto weights, device->make_resident(*weights_, weights_));
    LATHE_ASSIGN(const DeviceMemory memory, device->allocate(512));
    LATHE_ASSIGN(const DeviceMemory workspace, device->allocate(1024));
    LATHE_ASSIGN(const auto queue, device->make_queue());
    LaunchCase launch;
    launch.launches[0].shared_bytes = 64 << 10;
    launch.launches[0].cluster = 2;
    launch.input.data = memory.data();
    launch.output.data = memory.data() + 256;
    LATHE_ASSIGN(const auto kernel, device->make_kernel(launch.record()));
    LATHE_TRY(kernel->prepare(launch.operands(), 1));
    const auto work = [&](Queue& on) { return kernel->enqueue(launch.operands(), workspace.data(), on); };
    int value = 41;
    LATHE_TRY(device->upload(memory.data(), &value, sizeof(value), *queue));
    {
      LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue));
      LATHE_TRY(work(*queue));
    }
    LATHE_ASSIGN(const auto graph, device->capture(work));
    launch.symbols = {8};
    LATHE_TRY(graph->update(work));
    {
      LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue));
      LATHE_TRY(graph->replay(*queue));
    }
    LATHE_ASSIGN(const auto event, dynamic_cast<EventMaker&>(*device).make_event());
    {
      LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue));
      LATHE_TRY(event->record(*queue));
    }
    LATHE_TRY(event->hold(*queue));
    LATHE_TRY(event->wait());
    LATHE_TRY(device->time(*queue, work, 2));
    LATHE_TRY(device->download(&value, memory.data() + 256, sizeof(value), *queue));
    return value;
  }

  void expect_nothing_left(const std::string& what) {
    for (const char* kind : kLiveKinds) ASSERT_EQ(fake_cuda_live(kind), 0u) << kind << " leaked after " << what;
    ASSERT_EQ(fake_cuda_current_context(), nullptr) << what;
  }

  std::shared_ptr<std::vector<std::byte>> weights_ = std::make_shared<std::vector<std::byte>>(1000);
};

TEST_F(FailuresTest, TheSequenceRuns) {
  const auto value = run_engine();
  ASSERT_OK(value);
  EXPECT_EQ(*value, 42);
  std::set<std::string> called;
  for (size_t i = 0; i < fake_cuda_calls(); ++i) called.insert(fake_cuda_call(i));
  // Every required function but those that a failure needs.
  for (const char* name : {"cuMemAllocAsync", "cuMemFreeAsync", "cuModuleUnload", "cuGraphExecUpdate_v2",
                           "cuGraphLaunch", "cuFuncSetAttribute", "cuEventElapsedTime", "cuFuncGetParamInfo"})
    EXPECT_TRUE(called.contains(name)) << name;
}

TEST_F(FailuresTest, EachCallMayFail) {
  ASSERT_OK(run_engine());
  const size_t before = fake_cuda_calls();
  ASSERT_OK(run_engine());
  const size_t calls = fake_cuda_calls() - before;
  ASSERT_GT(calls, 50u);
  size_t reported = 0;
  for (const int code : {2, kUnknownFailure})
    for (size_t nth = 1; nth <= calls; ++nth) {
      fake_cuda_fail(nullptr, nth, code, 0);
      const size_t at = fake_cuda_calls();
      const auto value = run_engine();
      const std::string what = fmt::format("{} ({}), {}", fake_cuda_call(at + nth - 1), nth, code);
      expect_nothing_left(what);
      if (HasFatalFailure()) return;
      if (value) {
        EXPECT_EQ(*value, 42) << what;
      } else {
        ++reported;
        EXPECT_FALSE(value.error().message.empty()) << what;
      }
    }
  EXPECT_GT(reported, calls / 2);  // the others give something back, or can be done without
  EXPECT_EQ(fake_cuda_failures(), 2 * calls);
  ASSERT_OK(run_engine());
}

TEST_F(FailuresTest, EachCallMayEndTheDevice) {
  ASSERT_OK(run_engine());
  const size_t before = fake_cuda_calls();
  ASSERT_OK(run_engine());
  const size_t calls = fake_cuda_calls() - before;
  for (size_t nth = 1; nth <= calls; ++nth) {
    fake_cuda_fail(nullptr, nth, kIllegalAddress, 1);
    const size_t at = fake_cuda_calls();
    const auto value = run_engine();
    const std::string what = fmt::format("{} ({})", fake_cuda_call(at + nth - 1), nth);
    expect_nothing_left(what);
    if (HasFatalFailure()) return;
    if (value) {
      EXPECT_EQ(*value, 42) << what;
    }
  }
  ASSERT_OK(run_engine());  // all was given back, and the context begins anew
}

// S83.
TEST_F(FailuresTest, LostDevicesFailAtOnceAndTellWhy) {
  fake_cuda_set_device_count(2);
  const auto device = *open_device(0), other = *open_device(1);
  const auto queue = *device->make_queue();
  const auto memory = *device->allocate(512);
  LaunchCase launch;
  const auto kernel = *device->make_kernel(launch.record());
  fake_cuda_fail("cuStreamSynchronize", 1, kIllegalAddress, 1);
  const Result<> fault = device->wait(*queue);
  EXPECT_FAILS(fault, device_fault);
  EXPECT_NE(fault.error().message.find("another engine's or the application's own"), std::string::npos);

  const size_t calls = fake_cuda_calls();
  int value = 41;
  const auto work = [&](Queue& on) { return kernel->enqueue(launch.operands(), nullptr, on); };
  EXPECT_FAILS(device->wait(*queue), device_lost);
  EXPECT_FAILS(device->allocate(1), device_lost);
  EXPECT_FAILS(device->allocate(0), device_lost);
  EXPECT_FAILS(device->upload(memory.data(), &value, 4, *queue), device_lost);
  EXPECT_FAILS(device->download(&value, memory.data(), 4, *queue), device_lost);
  EXPECT_FAILS(device->make_queue(), device_lost);
  EXPECT_FAILS(device->make_stream_queue(nullptr), device_lost);
  EXPECT_FAILS(device->make_kernel(launch.record()), device_lost);
  EXPECT_FAILS(device->make_resident(*weights_, weights_), device_lost);
  EXPECT_FAILS(device->capture(work), device_lost);
  EXPECT_FAILS(device->time(*queue, work, 1), device_lost);
  EXPECT_FAILS(queue->begin(), device_lost);
  EXPECT_FAILS(work(*queue), device_lost);
  EXPECT_FAILS(open_device(0), device_lost);
  EXPECT_FALSE(device->is_accessible(memory.data()));
  EXPECT_EQ(value, 41);
  EXPECT_EQ(fake_cuda_calls(), calls) << "a lost device is not asked again";
  EXPECT_NE(device->allocate(1).error().message.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos);

  EXPECT_TRUE(other->allocate(100).has_value());
}

// S89.
TEST_F(FailuresTest, ADeviceComesBackWhenAllIsGivenBack) {
  {
    const auto device = *open_device(0);
    const auto queue = *device->make_queue();
    fake_cuda_fail("cuStreamSynchronize", 1, kIllegalAddress, 1);
    EXPECT_FAILS(device->wait(*queue), device_fault);
  }
  ASSERT_OK(run_engine());
}

TEST_F(FailuresTest, ThreadsWorkAtTheSameTime) {
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 25; ++n)
        if (const auto value = run_engine(); value && *value == 42) ++good;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 100);
}

// S121.
TEST_F(FailuresTest, ManyCyclesLeaveNothing) {
  for (int i = 0; i < 200; ++i) ASSERT_OK(run_engine());
  expect_nothing_left("200 cycles");
}

}  // namespace
}  // namespace lathe::cuda
