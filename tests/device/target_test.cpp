// SPDX-License-Identifier: Apache-2.0
// What devices say of themselves.
#include "device/target.h"

#include <gtest/gtest.h>

#include "device/cuda/architecture.h"
#include "kernels/cpu/open_device.h"

namespace lathe {
namespace {

// Predictions divide by these.
void expect_usable(const Target& target) {
  EXPECT_GE(target.cores, 1) << target.name;
  EXPECT_GE(target.cores, target.least_cores) << target.name;
  for (const double number : {target.clock_mhz, target.memory_rate, target.cache_bytes, target.cache_rate(),
                              target.shared_rate(), target.launch_us, target.products.f32, target.products.f64})
    EXPECT_GT(number, 0) << target.name;
  EXPECT_LT(target.memory_rate, target.cache_rate()) << target.name;
}

TEST(Target, EveryArchitectureIsDescribed) {
  for (const int number : {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121}) {
    const auto architecture = cuda::find_architecture(number);
    ASSERT_TRUE(architecture) << number;
    const Target target = cuda::describe(**architecture);
    expect_usable(target);
    EXPECT_EQ(target.name, cuda::target_name(**architecture));
    EXPECT_GT(target.products.matrix, target.products.f32);
    EXPECT_EQ(target.matrix_products(DType::i8), 2 * target.products.matrix);
    EXPECT_EQ(target.products.warpgroup_matrix > 0, target.limits.warpgroups);
    EXPECT_GE(target.limits.core_shared_bytes, target.limits.shared_bytes);
  }
}

// An H200 as its driver describes it, then a slice of it, and a driver that keeps the clocks to itself.
TEST(Target, ADeviceOverridesTheTable) {
  const cuda::Architecture& hopper = **cuda::find_architecture(90);
  cuda::DeviceProperties properties;
  properties.multiprocessors = 132;
  properties.clock_khz = 1'980'000;
  properties.memory_clock_khz = 3'201'000;
  properties.memory_bus_bits = 6144;
  properties.l2_bytes = 50 << 20;
  const Target whole = cuda::describe(hopper, properties);
  EXPECT_EQ(whole.cores, 132);
  EXPECT_EQ(whole.least_cores, 132);
  EXPECT_NEAR(whole.memory_rate, 4.917e6, 1e3);
  EXPECT_NEAR(whole.clock_mhz, 1700, 1);
  EXPECT_EQ(whole.cache_bytes, 50 << 20);

  properties.multiprocessors = 16;
  properties.clock_khz = properties.memory_clock_khz = 0;
  const Target slice = cuda::describe(hopper, properties), table = cuda::describe(hopper);
  EXPECT_EQ(slice.cores, 16);
  EXPECT_EQ(slice.least_cores, 16);
  EXPECT_EQ(slice.memory_rate, table.memory_rate);
  EXPECT_EQ(slice.clock_mhz, table.clock_mhz);
}

TEST(Target, ACpuHasTheCoresOfItsThreads) {
  for (const int threads : {1, 3}) {
    const auto device = cpu::open_device({.threads = threads, .pin = false, .spin_us = 0});
    ASSERT_TRUE(device) << device.error().to_string();
    const Target target = (*device)->describe();
    expect_usable(target);
    EXPECT_EQ(target.cores, threads);
    EXPECT_EQ(target.name, (*device)->target());
    EXPECT_EQ(target.products.matrix, 0);
  }
}

}  // namespace
}  // namespace lathe
