// SPDX-License-Identifier: Apache-2.0
// A GPU as a device: memory, copies, kernels, queues, on the stand-in driver.
#include "device/cuda/launch_case.h"
#include "fake_cuda/fake_device.h"

namespace lathe::cuda {
namespace {

class DeviceTest : public FakeDeviceTest {};

TEST_F(DeviceTest, OpensOnceAndTellsWhatItIs) {
  fake_cuda_set_device(0, "Test GPU", 8, 6, size_t{1} << 30);
  const auto device = open_device(0);
  ASSERT_OK(device);
  EXPECT_EQ(*device, *open_device(0));
  EXPECT_EQ((*device)->name(), "cuda:0");
  EXPECT_EQ((*device)->target(), "cuda-sm_86");
  EXPECT_FALSE((*device)->is_host());
  EXPECT_NE((*device)->timing_key().find("Test GPU"), std::string::npos);
  EXPECT_TRUE((*device)->check_target("cuda-sm_86").has_value());
  for (const char* other : {"cuda-sm_80", "cuda-sm_89", "cuda-sm_90"})
    EXPECT_FAILS((*device)->check_target(other), plan_target);
  EXPECT_FAILS((*device)->check_target("cpu-x86_64-avx512"), invalid_argument);
}

TEST_F(DeviceTest, TheCurrentDeviceIsTheCallers) {
  fake_cuda_set_device_count(2);
  const auto first = open_current_device();
  ASSERT_OK(first);
  EXPECT_EQ((*first)->name(), "cuda:0");
  const auto second = *open_device(1);
  const auto queue = *second->make_queue();
  ASSERT_OK(queue->begin());  // makes the second device's context current
  const auto current = open_current_device();
  queue->end();
  ASSERT_OK(current);
  EXPECT_EQ(*current, second);
}

TEST_F(DeviceTest, MissingDevicesAndUnknownArchitectures) {
  EXPECT_FAILS(open_device(1), cuda_no_device);
  EXPECT_FAILS(open_device(-1), cuda_no_device);
  fake_cuda_set_device(0, "Old GPU", 7, 0, size_t{1} << 30);
  EXPECT_FAILS(open_device(0), cuda_architecture_unsupported);
  fake_cuda_set_device(0, "New GPU", 99, 0, size_t{1} << 30);
  EXPECT_FAILS(open_device(0), cuda_architecture_unsupported);
  fake_cuda_set_device_count(0);
  EXPECT_FAILS(open_device(0), cuda_no_device);
}

TEST_F(DeviceTest, CopiesThereAndBack) {
  const auto device = *open_device(0);
  const auto queue = *device->make_queue();
  std::vector<int> in(1000), out(1000);
  for (int i = 0; i < 1000; ++i) in[i] = i;
  const auto memory = device->allocate(4000);
  ASSERT_OK(memory);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 256, 0u);
  ASSERT_OK(device->upload(memory->data(), in.data(), 4000, *queue));
  ASSERT_OK(device->download(out.data(), memory->data(), 4000, *queue));
  EXPECT_EQ(in, out);
  EXPECT_FAILS(device->upload(memory->data() + 1, in.data(), 4000, *queue), device_call_failed);
  ASSERT_OK(device->wait(*queue));
}

TEST_F(DeviceTest, EmptyMemoryIsNoMemory) {
  const auto device = *open_device(0);
  const auto memory = device->allocate(0);
  ASSERT_OK(memory);
  EXPECT_EQ(memory->data(), nullptr);
  EXPECT_EQ(fake_cuda_live("memory"), 0u);
}

TEST_F(DeviceTest, OutOfMemoryTellsSizesAndLeavesTheDeviceUsable) {
  const auto device = *open_device(0);
  fake_cuda_use_memory(0, (size_t{16} << 30) - 1000);
  const auto memory = device->allocate(4000);
  EXPECT_FAILS(memory, out_of_memory);
  EXPECT_NE(memory.error().message.find("4000 bytes (1000 of"), std::string::npos) << memory.error().message;
  EXPECT_TRUE(device->allocate(500).has_value());
}

TEST_F(DeviceTest, WorksWithoutPools) {
  fake_cuda_set_device_pools(0, 0);
  const auto device = *open_device(0);
  EXPECT_TRUE(device->allocate(4000).has_value());
}

TEST_F(DeviceTest, KnowsWhichAddressesKernelsCanUse) {
  fake_cuda_set_device_count(2);
  const auto device = *open_device(0), other = *open_device(1);
  const auto memory = device->allocate(100);
  int on_host = 0, pinned = 0, managed = 0;
  fake_cuda_register(&pinned, 4, 1, 0, 0);
  fake_cuda_register(&managed, 4, 2, 1, 1);
  EXPECT_TRUE(device->is_accessible(memory->data()));
  EXPECT_TRUE(device->is_accessible(memory->data() + 99));
  EXPECT_FALSE(other->is_accessible(memory->data()));
  EXPECT_FALSE(device->is_accessible(&on_host));
  EXPECT_TRUE(device->is_accessible(&pinned));
  EXPECT_TRUE(device->is_accessible(&managed));
}

TEST_F(DeviceTest, WeightsAreResidentOnce) {
  const auto device = *open_device(0);
  const auto owner = std::make_shared<std::vector<std::byte>>(1000, std::byte{7});
  auto first = device->make_resident(*owner, owner);
  ASSERT_OK(first);
  EXPECT_EQ(std::memcmp(first->get(), owner->data(), 1000), 0);
  EXPECT_EQ(*first, *device->make_resident(*owner, owner));
  EXPECT_EQ(fake_cuda_live("memory"), 1u);
  const auto other = device->make_resident(std::span(*owner).first(10), owner);
  EXPECT_NE(*first, *other);
  first->reset();
  EXPECT_EQ(fake_cuda_live("memory"), 1u);
  EXPECT_TRUE(device->make_resident({}, nullptr).has_value());
}

TEST_F(DeviceTest, TheCallersContextStaysCurrent) {
  fake_cuda_set_device_count(2);
  const auto one = *open_device(0), other = *open_device(1);
  const auto outer = *other->make_queue(), queue = *one->make_queue();
  ASSERT_OK(outer->begin());  // as an application would have it
  ASSERT_EQ(fake_cuda_is_current(1), 1);
  LaunchCase launch;
  {
    const auto kernel = one->make_kernel(launch.record());
    ASSERT_OK(kernel);
    const auto memory = one->allocate(100);
    ASSERT_OK(one->upload(memory->data(), "text", 4, *queue));
    const QueueTurn turn = *QueueTurn::take(*queue);
    EXPECT_EQ(fake_cuda_is_current(0), 1);
    ASSERT_OK((*kernel)->enqueue(launch.operands(), memory->data(), *queue));
    ASSERT_OK(one->wait(*queue));
  }
  EXPECT_EQ(fake_cuda_is_current(1), 1);
  outer->end();
}

TEST_F(DeviceTest, ThingsMayBeDestroyedInAnyOrder) {
  LaunchCase launch;
  for (int first = 0; first < 5; ++first) {
    auto device = *open_device(0);
    auto queue = *device->make_queue();
    auto memory = *device->allocate(100);
    auto kernel = *device->make_kernel(launch.record());
    auto graph = *device->capture([&](Queue& on) { return kernel->enqueue(launch.operands(), memory.data(), on); });
    const std::function<void()> destroy[] = {[&] { device.reset(); }, [&] { queue.reset(); },
                                             [&] { memory = DeviceMemory(); }, [&] { kernel.reset(); },
                                             [&] { graph.reset(); }};
    for (int i = 0; i < 5; ++i) destroy[(first + 2 * i) % 5]();
    for (const char* kind : kLiveKinds) ASSERT_EQ(fake_cuda_live(kind), 0u) << kind;
  }
}

TEST_F(DeviceTest, StepsWithoutLaunchesAreRefused) {
  const auto device = *open_device(0);
  StepRecord record;
  record.kernel = "unheard_of";
  EXPECT_FAILS(device->make_kernel(record), plan_malformed);
}

TEST_F(DeviceTest, TimesWork) {
  const auto device = *open_device(0);
  const auto queue = *device->make_queue();
  LaunchCase launch;
  const auto kernel = *device->make_kernel(launch.record());
  const auto times = device->time(
      *queue, [&](Queue& on) { return kernel->enqueue(launch.operands(), nullptr, on); }, 7);
  ASSERT_OK(times);
  ASSERT_EQ(times->size(), 7u);
  for (const double time : *times) EXPECT_NEAR(time, 200, 0.001);
  EXPECT_FAILS(device->time(
                   *queue, [](Queue&) -> Result<> { return fail(ErrorCode::internal, "no"); }, 3),
               internal);
}

}  // namespace
}  // namespace lathe::cuda
