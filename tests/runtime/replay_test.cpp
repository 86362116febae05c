// SPDX-License-Identifier: Apache-2.0
// Which runs are replayed from graphs, and which graph gives way to a new one.
#include "runtime/replay.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "device/null/null_device.h"

namespace lathe {
namespace {

// Its graphs tell which of them is replayed. What makes them ready can be made to wait, and to fail.
class GraphDevice final : public null::NullDevice {
 public:
  struct Graph final : CapturedGraph {
    Graph(GraphDevice& device, int number) : device(device), number(number) {}
    Result<> replay(Queue&) override {
      device.replayed = number;
      return {};
    }
    Result<> update(const std::function<Result<>(Queue&)>& work) override {
      ++device.updates;
      return work(*device.queue);
    }
    Result<> make_ready() override {
      ++device.begun;
      while (device.is_held) std::this_thread::yield();
      ++device.made;
      if (device.lacks_memory) throw std::bad_alloc();
      return device.fails ? Result<>(fail(ErrorCode::out_of_memory, "no")) : Result<>();
    }
    GraphDevice& device;
    const int number;
  };
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>& work) override {
    if (!has_graphs) return nullptr;
    LATHE_TRY(work(*queue));
    return std::make_unique<Graph>(*this, ++captures);
  }

  std::unique_ptr<Queue> queue = *make_queue();
  bool has_graphs = true;
  int captures = 0, updates = 0, replayed = 0;
  std::atomic<int> begun = 0, made = 0;
  std::atomic<bool> is_held = false, fails = false, lacks_memory = false;
};

class ReplayTest : public testing::Test {
 protected:
  // The number of the graph that has replayed a run of this size; 0 where it went step by step.
  int run(Replay& replay, int64_t size, bool fails = false) {
    replay.begin();
    replay.add_address(&device_);
    replay.add_sizes({{size}});
    const Result<bool> held = replay.hold([&](Queue&) -> Result<> {
      return fails ? Result<>(fail(ErrorCode::invalid_state, "the capture fails")) : Result<>();
    });
    EXPECT_EQ(!held, fails);
    if (!held || !*held) return 0;
    EXPECT_TRUE(replay.replay(*device_.queue));
    return device_.replayed;
  }
  // The same until a graph that is made meanwhile is ready.
  int run_until_ready(Replay& replay, int64_t size) {
    while (true)
      if (const int number = run(replay, size)) return number;
  }
  GraphDevice device_;
};

TEST_F(ReplayTest, OneGraphIsOfARunThatRepeatsTheLastOne) {
  Replay replay(device_, 1, 1);
  for (const int64_t size : {1, 2, 1, 2}) EXPECT_EQ(run(replay, size), 0);
  EXPECT_EQ(run(replay, 2), 1);
  EXPECT_EQ(run(replay, 1), 0);
  EXPECT_EQ(run(replay, 2), 1) << "the graph is still there";
  EXPECT_EQ(run(replay, 1), 0);
  EXPECT_EQ(run(replay, 1), 1) << "and now of other sizes";
  EXPECT_EQ(device_.captures, 1);
  EXPECT_EQ(device_.updates, 1);
  replay.forget();
  EXPECT_EQ(run(replay, 1), 0);
  EXPECT_FALSE(replay.awaits_replays()) << "of sizes that take turns none gets a graph";
  EXPECT_EQ(run(replay, 1), 1);
}

TEST_F(ReplayTest, SeveralGraphsAreOfTheRunsThatWereHeldLast) {
  Replay replay(device_, 1, 1);
  replay.hold_most(3);
  for (const int64_t size : {1, 2, 3}) EXPECT_EQ(run(replay, size), 0);
  for (const int64_t size : {1, 2, 3}) EXPECT_EQ(run_until_ready(replay, size), size);
  for (const int64_t size : {1, 2, 3, 1}) EXPECT_EQ(run(replay, size), size) << "sizes that take turns";
  EXPECT_EQ(run(replay, 4), 0);
  EXPECT_EQ(run_until_ready(replay, 4), 2) << "in place of the one that was not held for longest";
  EXPECT_EQ(run(replay, 1), 1);
  EXPECT_EQ(run(replay, 3), 3);
  EXPECT_EQ(device_.captures, 3);
  EXPECT_EQ(device_.updates, 1);
}

TEST_F(ReplayTest, AsManyReplaysAreAwaitedAsThereAreGraphs) {
  Replay replay(device_, 1, 1);
  constexpr int64_t kGraphs = 40;
  replay.hold_most(kGraphs);
  EXPECT_FALSE(replay.awaits_replays()) << "nothing has run";
  for (int64_t size = 1; size <= kGraphs; ++size) {
    EXPECT_EQ(run(replay, size), 0);
    EXPECT_TRUE(replay.awaits_replays());
    EXPECT_EQ(run_until_ready(replay, size), size);
    if (size != 3) continue;
    EXPECT_EQ(run(replay, kGraphs + 3), 0);
    for (const int64_t again : {1, 2, 3}) {
      EXPECT_TRUE(replay.awaits_replays());
      EXPECT_EQ(run(replay, again), again);
    }
    EXPECT_FALSE(replay.awaits_replays());
  }
  EXPECT_EQ(run(replay, kGraphs + 1), 0);
  for (size_t i = 0; i < Replay::kMostAwaited; ++i) {
    EXPECT_TRUE(replay.awaits_replays());
    EXPECT_EQ(run(replay, 1), 1);
  }
  EXPECT_FALSE(replay.awaits_replays());
}

TEST_F(ReplayTest, NoRunWaitsForAGraph) {
  Replay replay(device_, 1, 1);
  replay.hold_most(2);
  device_.is_held = true;
  for (int i = 0; i < 100; ++i)
    for (const int64_t size : {1, 2}) EXPECT_EQ(run(replay, size), 0) << "step by step, for none is ready";
  EXPECT_EQ(device_.captures, 1) << "nothing is captured while a graph is made";
  EXPECT_EQ(device_.made, 0);
  device_.is_held = false;
  EXPECT_EQ(run_until_ready(replay, 1), 1);
  EXPECT_EQ(run_until_ready(replay, 2), 2);
}

TEST_F(ReplayTest, AGraphThatCannotBeMadeFailsOneRun) {
  for (std::atomic<bool>* const reason : {&device_.fails, &device_.lacks_memory}) {
    Replay replay(device_, 1, 1);
    replay.hold_most(2);
    *reason = true;
    EXPECT_EQ(run(replay, 1), 0);
    EXPECT_EQ(run(replay, 1), 0);
    replay.begin();
    replay.add_address(&device_);
    replay.add_sizes({{int64_t{1}}});
    while (!replay.has_coming()) std::this_thread::yield();
    const Result<bool> held = replay.hold([](Queue&) { return Result<>(); });
    ASSERT_FALSE(held);
    EXPECT_EQ(held.error().code, ErrorCode::out_of_memory);
    *reason = false;
    EXPECT_EQ(run_until_ready(replay, 1), device_.captures) << "and is made anew";
  }
}

TEST_F(ReplayTest, AReplayThatGoesWaitsForItsGraph) {
  std::thread releases;
  {
    Replay replay(device_, 1, 1);
    replay.hold_most(8);
    device_.is_held = true;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(run(replay, 1), 0);
    while (device_.begun == 0) std::this_thread::yield();
    releases = std::thread([&] { device_.is_held = false; });
  }
  EXPECT_EQ(device_.made, 1);
  releases.join();
}

TEST_F(ReplayTest, AFailedCaptureHoldsNothing) {
  Replay replay(device_, 1, 1);
  constexpr bool kFails = true;
  EXPECT_EQ(run(replay, 1), 0);
  EXPECT_EQ(run(replay, 1, kFails), 0);
  EXPECT_EQ(run(replay, 1), 1);
  EXPECT_EQ(run(replay, 2), 0);
  EXPECT_EQ(run(replay, 2, kFails), 0);
  EXPECT_EQ(run(replay, 1), 0) << "the graph was to be of size 2, and is of none";
  EXPECT_EQ(run(replay, 1), 1);
}

// As where the host has no memory left: the run's own graph is not there, and no other one is taken for it.
TEST_F(ReplayTest, ACaptureThatThrowsHoldsNothing) {
  Replay replay(device_, 1, 1);
  const auto throws = [&](int64_t size) {
    replay.begin();
    replay.add_address(&device_);
    replay.add_sizes({{size}});
    EXPECT_THROW((void)replay.hold([](Queue&) -> Result<> { throw std::bad_alloc(); }), std::bad_alloc);
  };
  EXPECT_EQ(run(replay, 1), 0);
  throws(1);
  EXPECT_EQ(run(replay, 1), 1) << "the first graph";
  EXPECT_EQ(run(replay, 2), 0);
  throws(2);
  EXPECT_EQ(run(replay, 2), 1) << "captured anew";
  EXPECT_EQ(device_.updates, 2) << "one of which has thrown";
}

TEST_F(ReplayTest, WithoutGraphsEachRunGoesStepByStep) {
  device_.has_graphs = false;
  Replay replay(device_, 1, 1);
  replay.hold_most(2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(replay, 1), 0);
  EXPECT_FALSE(replay.awaits_replays());
}

}  // namespace
}  // namespace lathe
