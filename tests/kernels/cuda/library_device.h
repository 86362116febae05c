// SPDX-License-Identifier: Apache-2.0
// The beginning of tests of tactics that call libraries: on the stand-ins for driver and libraries, or, with
// LATHE_TEST_DEVICE=cuda:0, on the GPU with NVIDIA's libraries (choose these tests alone: the driver is opened once per
// process). What needs a stand-in is skipped there.
#pragma once

#include "fake_cuda/fake_device.h"
#include "fake_cuda/fake_library.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

class LibraryDeviceTest : public testing::Test {
 protected:
  explicit LibraryDeviceTest(const char* library) : fake_(library) {}
  void SetUp() override;
  void TearDown() override;

  // Every configuration of the tactic gives the right result.
  void check(const Tactic& tactic, const Problem& problem, const CheckOptions& options = {});
  // The library's call, with operands full of ones, as a recording: what stands in the result before it is replayed and
  // after. `one` is an element.
  Result<std::pair<std::vector<std::byte>, std::vector<std::byte>>> replay(const Tactic& tactic, const Problem& problem,
                                                                           std::span<const std::byte> one);
  static size_t launches(const Tactic& tactic, const Problem& problem);  // of its first configuration

  const bool on_gpu_ = std::getenv("LATHE_TEST_DEVICE") != nullptr;
  FakeLibrary fake_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Compiler> compiler_;
};

#define SKIP_ON_GPU() \
  if (on_gpu_) GTEST_SKIP() << "needs the stand-ins"

}  // namespace lathe::cuda
