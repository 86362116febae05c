// SPDX-License-Identifier: Apache-2.0
// Builds for the stand-in GPU that compile every kernel, whatever was kept of earlier ones, and what they warn of.
#pragma once

#include <cstdlib>
#include <string>

#include "fake_cuda/fake_device.h"
#include "fixtures/warnings.h"
#include "lathe.h"

namespace lathe::cuda {

class CompiledAnewTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    const char* const kept = std::getenv("LATHE_CACHE_DIR");
    cache_folder_ = kept ? kept : "";
    setenv("LATHE_CACHE_DIR", "", 1);  // code that was kept would not be compiled again
    releaseIdleDevices();              // and compilers with their cache
  }
  void TearDown() override {
    unsetenv("FAKE_NVRTC_FAULT");
    setenv("LATHE_CACHE_DIR", cache_folder_.c_str(), 1);
    releaseIdleDevices();
    FakeDeviceTest::TearDown();
  }

 private:
  std::string cache_folder_;
};

}  // namespace lathe::cuda
