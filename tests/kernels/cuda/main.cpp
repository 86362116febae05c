// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cuda/compiled_ahead.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!std::getenv("LATHE_TEST_DEVICE") && !GTEST_FLAG_GET(list_tests)) lathe::cuda::compile_ahead();
  return RUN_ALL_TESTS();
}
