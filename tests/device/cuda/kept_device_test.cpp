// SPDX-License-Identifier: Apache-2.0
// GPUs stay open between builds and engines.
#include "fake_cuda/fake_device.h"
#include "tuning/backend.h"

namespace lathe::cuda {
namespace {

constexpr int kIllegalAddress = 700;

class KeptDeviceTest : public FakeDeviceTest {
 protected:
  // Prepares a build and throws it away; what it got is the device.
  static Result<std::weak_ptr<Device>> use_device() {
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    LATHE_ASSIGN(const BackendBuild backend, prepare_build("cuda", {}));
    return std::weak_ptr<Device>(backend.device);
  }
};

TEST_F(KeptDeviceTest, ADeviceIsOpenedOnce) {
  const auto first = use_device();
  ASSERT_OK(first);
  EXPECT_EQ(fake_cuda_live("context"), 1u);
  const std::shared_ptr<Device> kept = first->lock();
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(use_device()->lock(), kept);
}

TEST_F(KeptDeviceTest, IdleDevicesAreReleased) {
  ASSERT_OK(use_device());
  releaseIdleDevices();
  EXPECT_EQ(fake_cuda_live("context"), 0u);
  const std::shared_ptr<Device> used = use_device()->lock();
  releaseIdleDevices();
  EXPECT_EQ(fake_cuda_live("context"), 1u) << "it is in use";
  EXPECT_TRUE(used->allocate(100).has_value());
}

// S89.
TEST_F(KeptDeviceTest, ALostDeviceStartsAnew) {
  const auto first = use_device();
  ASSERT_OK(first);
  fake_cuda_fail("cuMemAllocAsync", 1, kIllegalAddress, 1);
  EXPECT_FAILS(first->lock()->allocate(100), device_fault);
  const auto second = use_device();
  ASSERT_OK(second);
  EXPECT_TRUE(first->expired());
  EXPECT_TRUE(second->lock()->allocate(100).has_value());
}

}  // namespace
}  // namespace lathe::cuda
