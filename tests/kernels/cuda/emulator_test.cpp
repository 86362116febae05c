// SPDX-License-Identifier: Apache-2.0
// The emulator itself: what it computes, and what it catches.
#include <gtest/gtest.h>

#include <numeric>

#include "fake_cuda/tensor_map.h"
#include "kernels/cuda/emulated_body.h"

namespace lathe::cuda {
namespace {

TEST(Emulator, BarrierSeparatesWritesFromReads) {
  std::vector<int> data(256);
  const Result<> result = run_body(R"(
    int* shared = reinterpret_cast<int*>(dynamic_shared());
    for (int round = 0; round < 10; ++round) {
      shared[thread_x()] = thread_x() + round;
      barrier();
      x[thread_x()] += shared[(thread_x() + 37) % 256];
      barrier();
    })",
                                   data, 256, 1024);
  ASSERT_TRUE(result) << result.error().message;
  for (int i = 0; i < 256; ++i) EXPECT_EQ(data[static_cast<size_t>(i)], 10 * ((i + 37) % 256) + 45);
}

TEST(Emulator, BlocksOfAClusterReadEachOther) {
  std::vector<int> data(4 * 64);
  const Result<> result = run_body(R"(
    int* shared = reinterpret_cast<int*>(dynamic_shared());
    for (int round = 0; round < 3; ++round) {
      shared[thread_x()] = 100 * cluster_rank() + thread_x() + round;
      cluster_arrive();
      const int* next = cluster_peer(shared, (cluster_rank() + 1) % 4);
      cluster_wait();
      x[block_x() * 64 + thread_x()] += next[63 - thread_x()];
      cluster_arrive();
      cluster_wait();
    })",
                                   data, 64, 256, 4);
  ASSERT_TRUE(result) << result.error().message;
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(data[static_cast<size_t>(i)], 3 * (100 * ((i / 64 + 1) % 4) + 63 - i % 64) + 3);
}

TEST(Emulator, SharedMemoryEndsWithItsBlock) {
  std::vector<int> data(2);
  const Result<> result = run_body(R"(
    int* shared = reinterpret_cast<int*>(dynamic_shared());
    shared[thread_x()] = 7;
    cluster_arrive();
    cluster_wait();
    if (cluster_rank() == 0) return;
    for (int i = 0; i < 3; ++i) barrier();
    if (thread_x() == 0) x[0] = cluster_peer(shared, 0)[0], x[1] = cluster_peer(shared, 1)[0];)",
                                   data, 32, 128, 2);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(data, (std::vector<int>{-1, 7}));  // poison
}

// Two threads wait for what a third announces and a fourth brings, twice.
TEST(Emulator, PhaseBarriersCountArrivalsAndBytes) {
  std::vector<int> data(64);
  const Result<> result = run_body(R"(
    uint64* barrier_ = reinterpret_cast<uint64*>(dynamic_shared());
    int* value = reinterpret_cast<int*>(barrier_ + 1);
    if (thread_x() == 0) phase_barrier_init(barrier_, 2);
    phase_barrier_fence();
    barrier();
    for (uint32 round = 0; round < 2; ++round) {
      if (thread_x() == 40) {
        *value = 7 + round;
        phase_barrier_arrive(barrier_);
      }
      if (thread_x() == 50) phase_barrier_arrive(barrier_, 0);
      phase_barrier_wait(barrier_, round);
      x[thread_x()] += *value;
      barrier();
    })",
                                   data, 64, 64);
  ASSERT_TRUE(result) << result.error().message;
  for (const int value : data) EXPECT_EQ(value, 15);
}

// The block of 32 x 4 at (-2, 1) of a tensor of 40 x 4 numbers, to both blocks of a cluster.
TEST(Emulator, TensorsAreCopiedByBlocks) {
  std::vector<int> tensor(40 * 4), data(2 * 128 + 64);
  std::iota(tensor.begin(), tensor.end(), 100);
  const uint64_t dims[] = {40, 4}, strides[] = {160};
  const uint32_t box[] = {32, 4};
  fake_cuda::TensorMapContent map;
  ASSERT_TRUE(fake_cuda::make_tensor_map(4, 2, tensor.data(), dims, strides, box, map));
  std::memcpy(data.data() + 256, &map, sizeof map);
  const Result<> result = run_body(R"(
    char* block = reinterpret_cast<char*>(dynamic_shared());
    uint64* arrived = reinterpret_cast<uint64*>(block + 1024);
    if (thread_x() == 0) phase_barrier_init(arrived, 1);
    cluster_arrive();
    cluster_wait();
    if (thread_x() == 0) {
      phase_barrier_expect(arrived, 512);
      const int at[2] = {-2, 1};
      if (cluster_rank() == 1) copy_tensor(block, reinterpret_cast<const TensorMap*>(x + 256), at, arrived, 3);
    }
    phase_barrier_wait(arrived, 0);
    using Rows = gemm::Panel<float, 4, 32>;
    for (int i = thread_x(); i < 128; i += 32)
      x[cluster_rank() * 128 + i] = *reinterpret_cast<int*>(block + Rows::offset(i / 32, i % 32));
    cluster_arrive();
    cluster_wait();)",
                                   data, 32, 1024 + 64, 2);
  ASSERT_TRUE(result) << result.error().message;
  for (int i = 0; i < 256; ++i) {
    const int row = 1 + i % 128 / 32, column = -2 + i % 32;
    const int want = row < 4 && column >= 0 ? tensor[static_cast<size_t>(row * 40 + column)] : 0;
    EXPECT_EQ(data[static_cast<size_t>(i)], want) << i;
  }
}

// Each block of a cluster sends four floats to the next one, which waits for their bytes and for nothing else.
TEST(Emulator, StoresArriveInOtherBlocks) {
  std::vector<int> data(3 * 4);
  const Result<> result = run_body(R"(
    float* place = reinterpret_cast<float*>(dynamic_shared());
    uint64* arrived = reinterpret_cast<uint64*>(place + 4);
    if (thread_x() == 0) phase_barrier_init(arrived, 1), phase_barrier_expect(arrived, 16);
    cluster_arrive();
    cluster_wait();
    const float own = 10.0f * cluster_rank();
    if (thread_x() == 0) store_async(place, Vec<float, 4>{own, own + 1, own + 2, own + 3}, arrived, (cluster_rank() + 1) % 3);
    phase_barrier_wait(arrived, 0);
    if (thread_x() < 4) x[cluster_rank() * 4 + thread_x()] = static_cast<int>(place[thread_x()]);)",
                                   data, 32, 24, 3);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(data, (std::vector<int>{20, 21, 22, 23, 0, 1, 2, 3, 10, 11, 12, 13}));
}

TEST(Emulator, MisuseOfStores) {
  constexpr std::string_view kInit = R"(
    float* place = reinterpret_cast<float*>(dynamic_shared());
    uint64* arrived = reinterpret_cast<uint64*>(place + 6);
    if (thread_x() == 0) phase_barrier_init(arrived, 1), phase_barrier_expect(arrived, 8);
    cluster_arrive();
    cluster_wait();
  )";
  const auto expect = [&](std::string_view body, std::string_view message) {
    expect_failure(fmt::format("{}{}", kInit, body), message, 32, 32, 2);
  };
  expect("store_async(place + 1, Vec<float, 2>{1, 2}, arrived, 0);", "must be aligned");
  expect("if (thread_x() == 0) store_async(place, Vec<float, 2>{1, 2}, arrived, 1 - cluster_rank());", "a copy to");
  expect(
      "if (thread_x() == 0) store_async(place, Vec<float, 4>{1, 2, 3, 4}, arrived, 0); phase_barrier_wait(arrived, 0);",
      "on in phase_barrier_wait");
}

// Of two images of 3 x 5 pixels, with a border of one, every other column: the element (2, 1) of windows from the
// second one of the last row on, which go on in the next image and end behind it.
TEST(Emulator, WindowsAreCopied) {
  constexpr int kColumns = 5, kRows = 3, kPixels = 12;
  std::vector<int> images(2 * kRows * kColumns * 32), data(kPixels * 32 + 64);
  std::iota(images.begin(), images.end(), 1);
  const uint64_t dims[] = {32, kColumns, kRows, 2}, strides[] = {128, 128 * kColumns, 128 * kColumns * kRows};
  const int first[] = {-1, -1}, beyond[] = {-1, -1};  // windows of 3 x 3
  const uint32_t steps[] = {1, 2, 1, 1};
  fake_cuda::TensorMapContent map;
  ASSERT_TRUE(fake_cuda::make_window_map(4, 4, images.data(), dims, strides, first, beyond, 32, kPixels, steps, map));
  std::memcpy(data.data() + kPixels * 32, &map, sizeof map);
  const Result<> result = run_body(R"(
    char* block = reinterpret_cast<char*>(dynamic_shared());
    uint64* arrived = reinterpret_cast<uint64*>(block + 2048);
    if (thread_x() == 0) {
      phase_barrier_init(arrived, 1);
      phase_barrier_expect(arrived, 12 * 128);
      const int at[4] = {0, 1, 1, 0};
      copy_windows(block, reinterpret_cast<const TensorMap*>(x + 12 * 32), at, 2, 1, arrived);
    }
    barrier();
    phase_barrier_wait(arrived, 0);
    using Rows = gemm::Panel<float, 16, 32>;
    for (int i = thread_x(); i < 12 * 32; i += 32)
      x[i] = *reinterpret_cast<int*>(block + Rows::offset(i / 32, i % 32));)",
                                   data, 32, 2048 + 64);
  ASSERT_TRUE(result) << result.error().message;
  for (int i = 0; i < kPixels * 32; ++i) {
    const int window = i / 32 + 7;  // of all, three of each row
    const int column = window % 3 * 2 - 1 + 2, row = window / 3 % 3 - 1 + 1, image = window / 9;
    const bool is_inside = column < kColumns && row < kRows && image < 2;
    const int want = is_inside ? ((image * kRows + row) * kColumns + column) * 32 + i % 32 + 1 : 0;
    EXPECT_EQ(data[static_cast<size_t>(i)], want) << i;
  }
}

TEST(Emulator, MisuseOfTensorCopies) {
  constexpr std::string_view kInit = R"(
    uint64* barrier_ = reinterpret_cast<uint64*>(dynamic_shared());
    if (thread_x() == 0) phase_barrier_init(barrier_, 1);
    barrier();
  )";
  expect_failure("phase_barrier_wait(reinterpret_cast<uint64*>(dynamic_shared()), 0);", "before phase_barrier_init()",
                 32, 64);
  expect_failure(
      fmt::format("{}if (thread_x() == 0) phase_barrier_arrive(barrier_); phase_barrier_wait(barrier_, 1);", kInit),
      "on in phase_barrier_wait", 32, 64);
  expect_failure(
      fmt::format("{}if (thread_x() == 0) phase_barrier_expect(barrier_, 16); phase_barrier_wait(barrier_, 0);", kInit),
      "on in phase_barrier_wait", 32, 64);
  expect_failure(
      fmt::format("{}const int at[2] = {{}}; copy_tensor(dynamic_shared(), reinterpret_cast<TensorMap*>(x), at, "
                  "barrier_, 0);",
                  kInit),
      "what is no tensor map", 32, 64);
}

TEST(Emulator, MisuseOfClusters) {
  expect_failure("cluster_arrive(); if (thread_x() < 32) cluster_arrive();", "cluster_arrive() twice", 64, 0, 2);
  expect_failure("if (cluster_rank() == 0) { cluster_arrive(); cluster_wait(); }", "on in cluster_wait", 32, 0, 2);
  expect_failure("x[0] = *cluster_peer(reinterpret_cast<int*>(dynamic_shared()), 2);", "no such block", 32, 64, 2);
  expect_failure("x[0] = *cluster_peer(x, 0);", "is not in shared memory", 32, 64, 2);
  expect_failure("", "1 to 128 blocks can run at once", 32, 0, 129);
  expect_failure("", "whole warps", 16, 0, 2);
}

TEST(Emulator, ShufflesMoveValuesBetweenLanes) {
  std::vector<int> data(64 * 5);
  const Result<> result = run_body(R"(
    const int t = thread_x();
    x[t] = shuffle_xor(t, 5);
    x[64 + t] = shuffle_down(t, 3);
    x[128 + t] = shuffle_up(t, 3);
    x[192 + t] = shuffle_idx(t, 9);
    x[256 + t] = static_cast<int>(ballot(t % 3 == 0));)",
                                   data, 64);
  ASSERT_TRUE(result) << result.error().message;
  for (int t = 0; t < 64; ++t) {
    const int lane = t % 32, base = t - lane;
    const auto at = [&](int i) { return data[static_cast<size_t>(i + t)]; };
    EXPECT_EQ(at(0), base + (lane ^ 5));
    EXPECT_EQ(at(64), lane + 3 < 32 ? t + 3 : t);
    EXPECT_EQ(at(128), lane >= 3 ? t - 3 : t);
    EXPECT_EQ(at(192), base + 9);
    unsigned mask = 0;
    for (int i = 0; i < 32; ++i) mask |= ((base + i) % 3 == 0 ? 1u : 0u) << i;
    EXPECT_EQ(static_cast<unsigned>(at(256)), mask);
  }
}

// A and B are loaded by ldmatrix from row-major tiles, so layouts are checked against each other and the definition.
TEST(Emulator, MatrixUnitMultipliesWhatLdmatrixLoads) {
  std::vector<int> data(16 * 8);
  const Result<> result = run_body(R"(
    f16* a = reinterpret_cast<f16*>(dynamic_shared());  // 16 x 16
    f16* b = a + 256;                                   // 16 x 8, k rows
    for (int i = thread_x(); i < 256; i += 32) a[i] = from_float<f16>(static_cast<float>(i % 7 - 3));
    for (int i = thread_x(); i < 128; i += 32) b[i] = from_float<f16>(static_cast<float>(i % 5 - 2));
    barrier();
    unsigned fa[4], fb[2];
    ldmatrix_x4(fa, a + lane() % 16 * 16 + lane() / 16 * 8);
    ldmatrix_x2_trans(fb, b + lane() % 16 * 8);
    float d[4] = {1, 1, 1, 1};
    mma_m16n8k16(d, fa, fb, f16{});
    for (int i = 0; i < 4; ++i) x[(lane() / 4 + i / 2 * 8) * 8 + lane() % 4 * 2 + i % 2] = static_cast<int>(d[i]);
  )",
                                   data, 32, 1024);
  ASSERT_TRUE(result) << result.error().message;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      int sum = 1;
      for (int k = 0; k < 16; ++k) sum += ((m * 16 + k) % 7 - 3) * ((k * 8 + n) % 5 - 2);
      EXPECT_EQ(data[static_cast<size_t>(m * 8 + n)], sum) << m << " " << n;
    }
}

TEST(Emulator, Int8MatrixUnit) {
  std::vector<int> data(16 * 8);
  const Result<> result = run_body(R"(
    const auto pack = [](int first, int step) {
      unsigned r = 0;
      for (int i = 0; i < 4; ++i) r |= static_cast<unsigned>((first + i * step) % 11 - 5 & 255) << 8 * i;
      return r;
    };
    const int g = lane() / 4, t = lane() % 4;  // A[m][k] = (32m + k) % 11 - 5, B[k][n] = (8k + n) % 11 - 5
    unsigned a[4], b[2];
    for (int i = 0; i < 4; ++i) a[i] = pack((g + i % 2 * 8) * 32 + 4 * t + i / 2 * 16, 1);
    for (int i = 0; i < 2; ++i) b[i] = pack((4 * t + 16 * i) * 8 + g, 8);
    int d[4] = {};
    mma_m16n8k32_s8(d, a, b);
    for (int i = 0; i < 4; ++i) x[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
  )",
                                   data);
  ASSERT_TRUE(result) << result.error().message;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      int sum = 0;
      for (int k = 0; k < 32; ++k) sum += ((m * 32 + k) % 11 - 5) * ((k * 8 + n) % 11 - 5);
      EXPECT_EQ(data[static_cast<size_t>(m * 8 + n)], sum) << m << " " << n;
    }
}

constexpr std::string_view kCopy = R"(
    int* shared = reinterpret_cast<int*>(dynamic_shared());
    copy_async16(shared + 4 * thread_x(), x + 4 * thread_x(), 12);
    copy_async_commit();
    copy_async16(shared + 128 + 4 * thread_x(), x + 128 + 4 * thread_x(), 16);
    copy_async_commit();
    copy_async_wait<{}>();
    barrier();
    for (int i = 0; i < 4; ++i) x[256 + 4 * thread_x() + i] = shared[4 * thread_x() + i];
    for (int i = 0; i < 4; ++i) x[384 + 4 * thread_x() + i] = shared[128 + 4 * thread_x() + i];)";

TEST(Emulator, AsynchronousCopiesArriveAtTheWait) {
  for (const int pending : {0, 1, 2}) {
    std::vector<int> data(512);
    std::iota(data.begin(), data.end(), 0);
    const Result<> result = run_body(fmt::format(fmt::runtime(kCopy), pending), data, 32, 1024);
    ASSERT_TRUE(result) << result.error().message;
    for (int i = 0; i < 128; ++i) {
      EXPECT_EQ(data[static_cast<size_t>(256 + i)], pending > 1 ? -1 : i % 4 == 3 ? 0 : i);
      EXPECT_EQ(data[static_cast<size_t>(384 + i)], pending > 0 ? -1 : 128 + i);
    }
  }
}

TEST(Emulator, ReportsBarrierDivergence) {
  expect_failure("if (thread_x() < 40) barrier();", "from thread 0 on in barrier; from thread 40 on at the end", 64);
}

TEST(Emulator, ReportsDivergentWarpOperations) {
  expect_failure("x[0] = thread_x() < 4 ? shuffle_xor(1, 1) : shuffle_down(1, 1);", "different operations");
  expect_failure("if (thread_x() != 7) warp_barrier();", "at the end");
}

TEST(Emulator, ReportsAccessOutsideOfSharedMemory) {
  expect_failure("reinterpret_cast<int*>(dynamic_shared())[256 * thread_x()] = 1;", "access at 1024 of 1024 bytes", 32,
                 1024);
  expect_failure("dynamic_shared()[100] = 1;", "a thread wrote 100 bytes into the 100 bytes of shared memory", 32, 100);
  expect_failure("unsigned r[4]; ldmatrix_x4(r, dynamic_shared() + 64 * thread_x()); x[0] = r[0];",
                 "row outside of shared memory", 32, 1024);
}

TEST(Emulator, ReportsInvalidAddresses) {
  expect_failure("*reinterpret_cast<int*>(0x10) = 1;", "access to an invalid address");
}

TEST(Emulator, ReportsStackOverflows) {
  expect_failure(R"(
    struct Deep {
      static int sum(int n) {
        volatile int row[64];
        row[n % 64] = n;
        return n == 0 ? 0 : sum(n - 1) + row[n % 64];
      }
    };
    x[0] = Deep::sum(x[0] + (1 << 20));)",
                 "the stack overflows");
}

TEST(Emulator, ReportsMisalignedVectors) {
  expect_failure("x[0] = load_vector<4>(x + 1 + thread_x()).at[0];", "access of 16 bytes");
  expect_failure("store_vector(x + 1 + thread_x(), Vec<int, 2>{});", "access of 8 bytes");
}

TEST(Emulator, ReportsCompilerErrors) { expect_failure("undefined_function();", "undefined_function"); }

TEST(Emulator, ReportsThatTheDependencyWasNotAwaited) {
  const Result<std::vector<std::byte>> object = compile_for_emulator(
      "#include \"lib/types.cuh\"\nLATHE_PARAMETERS(0)\nLATHE_KERNEL(32, 1) void lathe_kernel() {}\n");
  ASSERT_TRUE(object) << object.error().message;
  const auto module = EmulatedModule::load(*object);
  ASSERT_TRUE(module) << module.error().message;
  const Result<> result = (*module)->launch({1, 1, 1}, 32, 0, {});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("dependency_wait"), std::string::npos) << result.error().message;
}

}  // namespace
}  // namespace lathe::cuda
