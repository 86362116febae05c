// SPDX-License-Identifier: Apache-2.0
#include "plan/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/step_scratch.h"

namespace lathe::plan {
namespace {

bool overlap_in_time(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// S115, S116: nothing overlaps that is needed at one time, and it never takes more than scratch behind all buffers.
void expect_apart(const std::vector<Lifetime>& buffers, const std::vector<Lifetime>& scratch, size_t alignment) {
  const Arena arena = arrange(buffers, scratch, alignment);
  ASSERT_EQ(arena.offsets.size(), buffers.size());
  ASSERT_EQ(arena.scratch.size(), scratch.size());
  std::vector<Lifetime> all = buffers;
  std::vector<size_t> offsets = arena.offsets;
  all.insert(all.end(), scratch.begin(), scratch.end());
  offsets.insert(offsets.end(), arena.scratch.begin(), arena.scratch.end());
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].bytes == 0) continue;
    EXPECT_EQ(offsets[i] % (i < buffers.size() ? 64 : alignment), 0u);
    EXPECT_LE(offsets[i] + all[i].bytes, arena.bytes);
    for (size_t k = 0; k < i; ++k)
      if (all[k].bytes > 0 && overlap_in_time(all[i], all[k])) {
        EXPECT_TRUE(offsets[i] >= offsets[k] + all[k].bytes || offsets[k] >= offsets[i] + all[i].bytes);
      }
  }
  size_t activations = 0;
  plan_memory(buffers, &activations);
  EXPECT_GE(arena.bytes, max_live_bytes(all));
  EXPECT_LE(arena.bytes, activations + alignment + max_live_bytes(scratch, alignment));
}

TEST(Arena, ScratchLiesWhereBuffersLeaveRoom) {
  // A pyramid: what a late step works in has room where the first ones were.
  const Lifetime buffers[] = {{8192, 0, 1}, {4096, 1, 2}, {2048, 2, 3}, {1024, 3, 4}};
  const Lifetime scratch[] = {{64, 1, 1}, {6000, 3, 3}};
  const Arena arena = arrange(buffers, scratch, 256);
  EXPECT_EQ(arena.bytes, 8192u + 4096 + 256);  // but for what the largest two have between them
  const Lifetime late[] = {{6000, 3, 3}};
  EXPECT_EQ(arrange(buffers, late, 256).bytes, 8192u + 4096);
}

TEST(Arena, OfRandomLifetimes) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers(random() % 60), scratch(random() % 40);
    const uint32_t steps = 2 + static_cast<uint32_t>(random() % 50);
    for (Lifetime& b : buffers) {
      b.first = static_cast<uint32_t>(random()) % steps;
      b.last = std::min(steps - 1, b.first + static_cast<uint32_t>(random() % 6));
      b.bytes = random() % 5000;
    }
    for (Lifetime& s : scratch) {
      s.first = static_cast<uint32_t>(random()) % steps;
      s.last = random() % 4 == 0 ? std::min(steps - 1, s.first + 3) : s.first;
      s.bytes = random() % 3 == 0 ? 0 : random() % 20000;
    }
    SCOPED_TRACE(round);
    expect_apart(buffers, scratch, round % 2 == 0 ? 64 : 256);
  }
}

TEST(Arena, SizesBeyondAnAddressSpaceAreTold) {
  const Lifetime buffers[] = {{SIZE_MAX - 100, 0, 0}}, scratch[] = {{SIZE_MAX - 3, 0, 0}};
  EXPECT_EQ(arrange(buffers, scratch, 256).bytes, SIZE_MAX);
}

TEST(StepScratch, StreamsOfASectionHaveTheirOwn) {
  Plan plan;
  plan.steps.resize(7);
  plan.sections = {{1, 5}};
  plan.steps[2].stream = plan.steps[4].stream = 1;  // 1 and 3 run on stream 0
  const StepScratch scratch(plan);
  EXPECT_EQ(scratch.of(1), scratch.of(3));
  EXPECT_EQ(scratch.of(2), scratch.of(4));
  EXPECT_NE(scratch.of(1), scratch.of(2));
  const size_t bytes[] = {10, 20, 30, 40, 5, 60, 0};
  const std::vector<Lifetime> lifetimes = scratch.lifetimes(bytes);
  ASSERT_EQ(lifetimes.size(), 5u);
  const auto is = [&](size_t step, size_t most, uint32_t first, uint32_t last) {
    const Lifetime& l = lifetimes[scratch.of(step)];
    return l.bytes == most && l.first == first && l.last == last;
  };
  EXPECT_TRUE(is(0, 10, 0, 0));
  EXPECT_TRUE(is(1, 40, 1, 4));
  EXPECT_TRUE(is(2, 30, 1, 4));
  EXPECT_TRUE(is(5, 60, 5, 5));
  EXPECT_TRUE(is(6, 0, 6, 6));
}

}  // namespace
}  // namespace lathe::plan
