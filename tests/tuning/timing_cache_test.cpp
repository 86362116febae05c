// SPDX-License-Identifier: Apache-2.0
// What a timing cache's file holds: entries, and the devices that they were measured on.
#include "tuning/timing_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "base/hash.h"

namespace lathe {
namespace {

Target some_target(const char* name, int cores) {
  Target target;
  target.name = name;
  target.cores = cores;
  target.least_cores = cores - 1;
  target.limits.warpgroups = true;
  target.limits.shared_bytes = 232448;
  target.products.warpgroup_matrix = 4096;
  target.clock_mhz = 1755.5;
  target.launch_us = 1.25;
  return target;
}

void fill(TimingCache& cache, const char* device, int cores) {
  cache.insert(TimingCache::key_of("problem", device), {{"gemm", "64x64", 12.5F}, {{"gemm", "32x32", 13}}});
  cache.note_device({device, some_target("cuda-sm_90", cores)});
}

// As a file with another last byte of magic, and `cut` bytes less before its digest, would be.
std::vector<std::byte> as_version(std::vector<std::byte> bytes, char version, size_t cut) {
  bytes.resize(bytes.size() - sizeof(Digest) - cut);
  bytes[7] = static_cast<std::byte>(version);
  const Digest digest = digest_of(bytes);
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

TEST(TimingCache, KeepsDevicesWithAllTheirNumbers) {
  TimingCache cache, again;
  fill(cache, "H200", 132);
  ASSERT_TRUE(again.deserialize(cache.serialize()).has_value());
  EXPECT_EQ(again.serialize(), cache.serialize());
  const auto devices = again.devices_of("cuda-sm_90");
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].timing_key, "H200");
  const Target &read = devices[0].target, given = some_target("cuda-sm_90", 132);
  EXPECT_EQ(read.cores, given.cores);
  EXPECT_EQ(read.least_cores, given.least_cores);
  EXPECT_EQ(read.limits.warpgroups, given.limits.warpgroups);
  EXPECT_EQ(read.limits.shared_bytes, given.limits.shared_bytes);
  EXPECT_EQ(read.products.warpgroup_matrix, given.products.warpgroup_matrix);
  EXPECT_EQ(read.clock_mhz, given.clock_mhz);
  EXPECT_EQ(read.launch_us, given.launch_us);
  EXPECT_TRUE(again.devices_of("cuda-sm_80").empty());
  again.clear();
  EXPECT_TRUE(again.devices_of("cuda-sm_90").empty());
}

TEST(TimingCache, MergesDevices) {
  TimingCache cache, other, same;
  fill(cache, "H200", 132);
  fill(other, "H100", 114);
  fill(same, "H200", 7);
  cache.merge(other);
  cache.merge(same);  // what is there already stays
  EXPECT_EQ(cache.size(), 2U);
  const auto devices = cache.devices_of("cuda-sm_90");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].timing_key, "H100");
  EXPECT_EQ(devices[1].target.cores, 132);
}

TEST(TimingCache, ReadsOlderVersionsAndNoNewerOnes) {
  TimingCache cache, again;
  cache.insert(TimingCache::key_of("problem", "device"), {{"gemm", "64x64", 12.5F}, {}});
  const std::vector<std::byte> bytes = cache.serialize();
  constexpr size_t kDevices = sizeof(uint64_t), kCandidates = sizeof(uint32_t);  // counts of none
  for (const auto& [version, cut] : {std::pair('2', kDevices), std::pair('1', kDevices + kCandidates)}) {
    again.clear();
    ASSERT_TRUE(again.deserialize(as_version(bytes, version, cut)).has_value()) << version;
    EXPECT_EQ(again.serialize(), bytes);
  }
  for (const char version : {'0', '4', '2', '1'})
    EXPECT_FALSE(again.deserialize(as_version(bytes, version, 0))) << version;
  EXPECT_EQ(again.serialize(), bytes);
}

TEST(TimingCache, RefusesDevicesThatNoneCanBe) {
  const Target good = some_target("cuda-sm_90", 132);
  std::vector<Target> wrong(6, good);
  wrong[0].cores = 0;
  wrong[1].least_cores = -1;
  wrong[2].clock_mhz = 0;
  wrong[3].memory_rate = -5;
  wrong[4].products.f32 = NAN;
  wrong[5].cache_bytes = INFINITY;
  for (const Target& target : wrong) {
    TimingCache cache, again;
    cache.note_device({"device", target});
    const auto refused = again.deserialize(cache.serialize());
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("describes no device"), std::string::npos) << refused.error().message;
  }
  TimingCache whole;
  fill(whole, "H200", 132);
  const std::vector<std::byte> bytes = whole.serialize();
  for (size_t cut = 1; cut < bytes.size() - sizeof(Digest) - 8; ++cut) {
    TimingCache again;
    EXPECT_FALSE(again.deserialize(as_version(bytes, '3', cut))) << cut;
  }
}

}  // namespace
}  // namespace lathe
