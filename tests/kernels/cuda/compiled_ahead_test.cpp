// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/compiled_ahead.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lathe::cuda {
namespace {

class CompiledAhead : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("LATHE_TEST_DEVICE")) GTEST_SKIP() << "is of the emulator";
  }
};

TEST_F(CompiledAhead, WhatATestAsksForLiesWithOthers) {
  const auto code =
      code_of_kernel("#include \"lib/tensor.cuh\"\nLATHE_PARAMETERS(0)\nLATHE_KERNEL(32, 1) void lathe_kernel() {}\n");
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_NE(code->front(), std::byte{0x7f}) << "an object of its own";
}

TEST_F(CompiledAhead, AnErrorIsToldToTheTestThatAsks) {
  const auto code = code_of_kernel("#error not by this compiler\n");
  ASSERT_FALSE(code);
  EXPECT_NE(code.error().message.find("not by this compiler"), std::string::npos) << code.error().message;
}

}  // namespace
}  // namespace lathe::cuda
