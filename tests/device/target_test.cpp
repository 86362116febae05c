// SPDX-License-Identifier: Apache-2.0
// What devices say of themselves.
#include "device/target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/cuda/architecture.h"
#include "device/family.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"

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
    EXPECT_EQ(target.products.matrix, cpu::has_matrix_registers() ? 512 : 0);
  }
}

constexpr std::string_view kProcessors[] = {
#define LATHE_CPU(target, ...) target,
#include "kernels/cpu/processors.def"
#undef LATHE_CPU
};

double peak_gflops(const Target& target) { return 2 * target.products.f32 * target.cores * target.clock_mhz / 1e3; }

TEST(Target, EveryCpuIsDescribed) {
  for (const std::string_view name : kProcessors) {
    SCOPED_TRACE(name);
    const cpu::Processor* processor = cpu::find_processor(name);
    ASSERT_NE(processor, nullptr);
    const Target one = cpu::describe(*processor, 1), all = cpu::describe(*processor, 0);
    for (const Target& target : {one, all, cpu::describe(*processor, 1000)}) expect_usable(target);
    EXPECT_EQ(one.name, name);
    EXPECT_EQ(one.cores, 1);
    EXPECT_EQ(one.least_cores, 1);
    EXPECT_EQ(all.cores, processor->threads);
    EXPECT_DOUBLE_EQ(peak_gflops(all), all.cores * peak_gflops(one));
    // A core of the least has SSE2, of the greatest two units of AVX-512 at a few GHz.
    EXPECT_GT(peak_gflops(one), 10);
    EXPECT_LT(peak_gflops(one), 300);
    EXPECT_GE(one.shared_rate(), one.cache_rate());
    EXPECT_GE(all.memory_rate, one.memory_rate);
    EXPECT_LE(cpu::describe(*processor, 1000).memory_rate, processor->memory_rate);
    EXPECT_EQ(find_family(name)->resolve(name).value(), name);
  }
  const auto core = [](const char* name) { return cpu::describe(*cpu::find_processor(name), 1); };
  EXPECT_LT(peak_gflops(core("cpu-x86_64")), peak_gflops(core("cpu-x86_64-avx2")));
  EXPECT_LT(peak_gflops(core("cpu-x86_64-avx2")), peak_gflops(core("cpu-x86_64-avx512")));
}

TEST(Target, CpusAreCalledByTheirArchitecture) {
  const auto resolved = [](const char* name) { return find_family("cpu")->resolve(name).value().value_or("nothing"); };
  EXPECT_EQ(resolved("cpu"), "cpu");
  EXPECT_EQ(resolved("cpu-x86_64"), "cpu-x86_64-baseline");
  EXPECT_EQ(resolved("cpu-arm64"), "cpu-arm64-baseline");
  for (const char* name :
       {"", "cpu-", "cpu-x86_64-", "cpu-x86_64-avx", "cpu-x86_64-avx2-", "cpu-x86", "cpu-z80", "avx2"})
    EXPECT_EQ(resolved(name), "nothing") << name;
}

TEST(Target, ThisMachineRunsItsLevelAndThoseBelow) {
  const std::vector<std::string> runnable = cpu::runnable_targets();
  EXPECT_EQ(std::ranges::count(runnable, cpu::target_name()), 1);
  for (const std::string_view name : kProcessors) {
    const cpu::Processor& processor = *cpu::find_processor(name);
    const bool runs = std::ranges::count(runnable, name) == 1;
    EXPECT_FALSE(runs && processor.level > cpu::isa_level()) << name;
    EXPECT_FALSE(cpu::is_here(processor) && !runs) << name;
  }
  const Target table = cpu::describe(cpu::own_processor(), 1), machine = cpu::describe_machine(1);
  EXPECT_EQ(machine.name, table.name);
  EXPECT_EQ(machine.products.f32, table.products.f32);
  EXPECT_EQ(machine.memory_rate, table.memory_rate);
  // All cores together read no faster than the memory gives.
  EXPECT_EQ(cpu::describe_machine(1000).memory_rate, cpu::own_processor().memory_rate);
  EXPECT_EQ(cpu::describe_machine(1000).cores, 1000);
}

// The folder of a core, as Linux has it.
class CoreFolder {
 public:
  CoreFolder() { EXPECT_NE(mkdtemp(path_), nullptr); }
  ~CoreFolder() { std::filesystem::remove_all(path_); }
  CoreFolder(const CoreFolder&) = delete;
  CoreFolder& operator=(const CoreFolder&) = delete;

  void write(const std::string& name, std::string_view text) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  Target describe() const { return cpu::describe_machine(1, path_); }

 private:
  char path_[32] = "/tmp/lathe_core_XXXXXX";
};

TEST(Target, ThisMachineHasTheClockThatItKeepsUp) {
  const CoreFolder core;
  const double table = cpu::own_processor().clock_mhz;
  EXPECT_EQ(core.describe().clock_mhz, table);
  core.write("cpufreq/cpuinfo_max_freq", "4700000\n");
  EXPECT_EQ(core.describe().clock_mhz, table);
  core.write("acpi_cppc/nominal_freq", "2450\n");
  EXPECT_EQ(core.describe().clock_mhz, 2450);
  core.write("cpufreq/base_frequency", "2600000\n");
  EXPECT_EQ(core.describe().clock_mhz, 2600);
  core.write("cache/index2/size", "768K\n");
  EXPECT_EQ(core.describe().cache_bytes, 768 << 10);
}

}  // namespace
}  // namespace lathe
