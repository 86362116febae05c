// SPDX-License-Identifier: Apache-2.0
// Compiled code is kept by what it was made of, in memory and as bytes that trust nothing.
#include "device/kernel_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lathe {
namespace {

constexpr const char* kEnvironment = "library=1.2.3.4\ndevice=a\n";

Digest key_of(int number) { return digest_of(std::as_bytes(std::span(&number, 1))); }
std::vector<std::byte> code_of(int number, size_t bytes = 100) { return std::vector(bytes, std::byte(number)); }

void fill(KernelCache& cache, std::initializer_list<int> numbers) {
  for (const int number : numbers)
    ASSERT_TRUE(cache.get(key_of(number), [&]() -> Result<std::vector<std::byte>> { return code_of(number); }));
}

bool has(KernelCache& cache, int number) {
  const auto refuse = []() -> Result<std::vector<std::byte>> { return fail(ErrorCode::invalid_state, "not there"); };
  const Result<DeviceCode> code = cache.get(key_of(number), refuse);
  return code && std::ranges::equal(code->bytes, code_of(number));
}

TEST(KernelCache, CompilesEachKernelOnce) {
  KernelCache cache(kEnvironment);
  fill(cache, {1, 2, 1, 1});
  const KernelCache::Counts counts = cache.counts();
  EXPECT_EQ(counts.compiled, 2u);
  EXPECT_EQ(counts.hits, 2u);
  EXPECT_EQ(counts.kernels, 2u);
  EXPECT_EQ(counts.bytes, 200u);
  EXPECT_FALSE(has(cache, 3));
  EXPECT_EQ(cache.counts().compiled, 2u) << "what fails is not kept";
}

TEST(KernelCache, OfManyThreadsOneCompiles) {
  KernelCache cache(kEnvironment);
  std::atomic<int> compiled = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      const Result<DeviceCode> code = cache.get(key_of(i % 2), [&]() -> Result<std::vector<std::byte>> {
        ++compiled;
        while (compiled < 2) std::this_thread::yield();  // for ever, where different kernels wait for each other
        return code_of(i % 2);
      });
      EXPECT_TRUE(code && std::ranges::equal(code->bytes, code_of(i % 2)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiled, 2);
}

TEST(KernelCache, WhatWasNotUsedForLongestGoes) {
  KernelCache cache(kEnvironment, 300);
  fill(cache, {1, 2, 3});
  EXPECT_TRUE(has(cache, 1));
  fill(cache, {4});
  EXPECT_FALSE(has(cache, 2));
  for (const int number : {1, 3, 4}) EXPECT_TRUE(has(cache, number)) << number;
  cache.set_limit(100);
  EXPECT_TRUE(has(cache, 4));
  EXPECT_EQ(cache.counts().kernels, 1u);
  EXPECT_EQ(cache.counts().evicted, 3u);
  fill(cache, {5});
  const Result<DeviceCode> large =
      cache.get(key_of(6), []() -> Result<std::vector<std::byte>> { return code_of(6, 1000); });
  ASSERT_TRUE(large);
  EXPECT_EQ(large->bytes.size(), 1000u) << "code that is not kept runs all the same";
  EXPECT_LE(cache.counts().bytes, 100u);
}

TEST(KernelCache, MergesWhatItHas) {
  KernelCache one(kEnvironment), two(kEnvironment), other_order(kEnvironment);
  fill(one, {1, 2});
  fill(two, {3, 2});
  ASSERT_TRUE(one.merge(two.serialize()));
  for (const int number : {1, 2, 3}) EXPECT_TRUE(has(one, number)) << number;
  EXPECT_EQ(one.counts().compiled, 2u) << "nothing was compiled for the third";
  fill(other_order, {3, 2, 1});
  EXPECT_EQ(one.serialize(), other_order.serialize());
  KernelCache empty(kEnvironment);
  EXPECT_TRUE(one.merge(empty.serialize()));
  EXPECT_EQ(one.counts().kernels, 3u);
  one.reset();
  EXPECT_EQ(one.serialize(), empty.serialize());
}

TEST(KernelCache, DamagedBytesChangeNothing) {
  KernelCache full(kEnvironment), cache(kEnvironment);
  fill(full, {1, 2});
  fill(cache, {7});
  const std::vector<std::byte> bytes = full.serialize(), before = cache.serialize();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> flipped = bytes;
    flipped[i] ^= std::byte{0x10};
    const Result<> merged = cache.merge(flipped);
    ASSERT_FALSE(merged) << "byte " << i;
    EXPECT_FALSE(cache.merge(std::span(bytes).first(i))) << "the first " << i;
  }
  EXPECT_EQ(cache.serialize(), before);
}

TEST(KernelCache, NamesWhatIsDifferentThere) {
  KernelCache here("library=1.2.3.4\ndevice=a\n"), there("library=1.2.3.4\ndevice=b\n");
  fill(there, {1});
  const Result<> merged = here.merge(there.serialize());
  ASSERT_FALSE(merged);
  for (const char* part : {"'device=b'", "'device=a'"})
    EXPECT_NE(merged.error().message.find(part), std::string::npos) << merged.error().message;
  EXPECT_EQ(here.counts().kernels, 0u);
}

}  // namespace
}  // namespace lathe
