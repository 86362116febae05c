// SPDX-License-Identifier: Apache-2.0
// The beginning of tests on the stand-in driver: it takes the place of the real one in the whole process.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "fake_cuda/driver/control.h"
#include "lathe.h"

namespace lathe::cuda {

inline std::string message_of(const Error& error) { return error.to_string(); }

#define ASSERT_OK(result)                                                               \
  do {                                                                                  \
    const auto& ok_result = (result);                                                   \
    ASSERT_TRUE(ok_result.has_value()) << ::lathe::cuda::message_of(ok_result.error()); \
  } while (0)
#define EXPECT_FAILS(result, wanted)                                                           \
  do {                                                                                         \
    const auto& failed_result = (result);                                                      \
    ASSERT_FALSE(failed_result.has_value());                                                   \
    EXPECT_EQ(failed_result.error().code, ErrorCode::wanted) << failed_result.error().message; \
  } while (0)

inline constexpr const char* kLiveKinds[] = {"memory",     "stream", "event", "graph",
                                             "executable", "module", "link",  "context"};

class FakeDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("LATHE_CUDA_DRIVER", FAKE_CUDA_DRIVER, 1);
    fake_cuda_reset();
  }
  void TearDown() override {
    releaseIdleDevices();
    for (const char* kind : kLiveKinds) EXPECT_EQ(fake_cuda_live(kind), 0u) << kind << " leaked";
    EXPECT_EQ(fake_cuda_current_context(), nullptr);
  }
};

inline std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size() + 1);
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace lathe::cuda
