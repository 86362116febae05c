// SPDX-License-Identifier: Apache-2.0
// Products of four warps on the emulator.
#include "kernels/cuda/emulated_body.h"

namespace lathe::cuda {
namespace {

// Panels of 64 rows of 64 elements, as asynchronous copies leave them.
constexpr std::string_view kWarpgroup = R"(
    using Rows = gemm::Panel<f16, 64, 64>;
    char* a = reinterpret_cast<char*>(dynamic_shared());
    char* b = a + Rows::kBytes;
    for (int i = thread_x(); i < 64 * 64; i += 128) {
      *reinterpret_cast<f16*>(a + Rows::offset(i / 64, i % 64)) = from_float<f16>(static_cast<float>(i * 7 % 11 - 5));
      *reinterpret_cast<f16*>(b + Rows::offset(i / 64, i % 64)) = from_float<f16>(static_cast<float>(i * 5 % 13 - 6));
    }
    matrix_units_fence();
    barrier();
    float d[8][4] = {};
    wgmma_fence();
    for (int step = 0; step < 4; ++step) wgmma_along_k<64>(d, a + 32 * step, b + 32 * step, f16{});
    wgmma_commit();
)";

TEST(EmulatorWarpgroup, WarpgroupsMultiplyPanelsAndRegisters) {
  std::vector<int> data(64 * 64);
  const Result<> result = run_body(fmt::format("{}{}", kWarpgroup, R"(
    unsigned left[4];  // of a 16 x 16 matrix: row - k
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + i % 2 * 8, k = lane() % 4 * 2 + i / 2 * 8;
      left[i] = pack_floats<f16>(row - k, row - k - 1);
    }
    wgmma_registers<64, false, 0>(d, left, b, f16{});
    wgmma_commit();
    wgmma_wait<0>();
    for (int j = 0; j < 8; ++j)
      for (int e = 0; e < 4; ++e)
        x[(warp() * 16 + lane() / 4 + e / 2 * 8) * 64 + j * 8 + lane() % 4 * 2 + e % 2] = static_cast<int>(d[j][e]);)"),
                                   data, 128, 16384);
  ASSERT_TRUE(result) << result.error().message;
  for (int m = 0; m < 64; ++m)
    for (int n = 0; n < 64; ++n) {
      int sum = 0;
      for (int k = 0; k < 64; ++k)
        sum += ((m * 64 + k) * 7 % 11 - 5 + (k < 16 ? m % 16 - k : 0)) * ((n * 64 + k) * 5 % 13 - 6);
      EXPECT_EQ(data[static_cast<size_t>(m * 64 + n)], sum);
    }
}

TEST(EmulatorWarpgroup, WarpgroupsMultiplyBytes) {
  std::vector<int> data(64 * 32);
  const Result<> result = run_body(R"(
    using Rows = gemm::Panel<int8, 64, 128>;
    char* a = reinterpret_cast<char*>(dynamic_shared());
    char* b = a + Rows::kBytes;
    for (int i = thread_x(); i < 64 * 128; i += 128) {
      a[Rows::offset(i / 128, i % 128)] = static_cast<char>(i * 7 % 256 - 128);
      if (i < 32 * 128) b[Rows::offset(i / 128, i % 128)] = static_cast<char>(i * 11 % 255 - 127);
    }
    matrix_units_fence();
    barrier();
    int d[4][4] = {};
    wgmma_fence();
    for (int step = 0; step < 4; ++step) wgmma_along_k<32>(d, a + 32 * step, b + 32 * step, int8{});
    wgmma_commit();
    wgmma_wait<0>();
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e)
        x[(warp() * 16 + lane() / 4 + e / 2 * 8) * 32 + j * 8 + lane() % 4 * 2 + e % 2] = d[j][e];)",
                                   data, 128, 96 * 128);
  ASSERT_TRUE(result) << result.error().message;
  for (int m = 0; m < 64; ++m)
    for (int n = 0; n < 32; ++n) {
      int sum = 0;
      for (int k = 0; k < 128; ++k) sum += ((m * 128 + k) * 7 % 256 - 128) * ((n * 128 + k) * 11 % 255 - 127);
      EXPECT_EQ(data[static_cast<size_t>(m * 32 + n)], sum);
    }
}

TEST(EmulatorWarpgroup, WarpgroupsReadUntilTheWait) {
  std::vector<int> data(128);
  const Result<> result = run_body(fmt::format("{}{}", kWarpgroup, R"(
    copy_async16(a + 16 * thread_x(), x, 0);  // to the first warp's rows, which the products still read
    barrier();
    wgmma_wait<0>();
    x[thread_x()] = d[0][0] != d[0][0];)"),
                                   data, 128, 16384);
  ASSERT_TRUE(result) << result.error().message;
  for (size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], i < 32) << i;  // not a number
}

TEST(EmulatorWarpgroup, MisuseOfWarpgroups) {
  constexpr std::string_view kCopied = R"(
    char* a = reinterpret_cast<char*>(dynamic_shared());
    copy_async16(a + 16 * thread_x(), x, 16);
    copy_async_commit();
    copy_async_wait<0>();
    barrier();
    float d[8][4] = {};
    wgmma_along_k<64>(d, a, a + 8192, f16{});)";
  expect_failure(kCopied, "without matrix_units_fence()", 128, 16384);
  expect_failure("float d[8][4] = {}; wgmma_along_k<64>(d, dynamic_shared(), dynamic_shared() + 8192, f16{});",
                 "wgmma of a panel outside", 128, 8192);
}

}  // namespace
}  // namespace lathe::cuda
