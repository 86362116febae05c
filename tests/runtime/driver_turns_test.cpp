// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

TEST(RunLaunches, EndTheWaitForOne) {
  RunLaunches launches;
  std::atomic<bool> is_done = false;
  const Clock::time_point begin = Clock::now();
  std::thread waiter([&] {
    launches.wait(milliseconds(60'000));
    is_done = true;
  });
  while (!is_done) {
    launches.note();
    std::this_thread::yield();
  }
  waiter.join();
  EXPECT_LT(Clock::now() - begin, milliseconds(30'000));
}

TEST(RunLaunches, OfBeforeTheWaitDoNotEndIt) {
  RunLaunches launches;
  launches.note();
  const Clock::time_point begin = Clock::now();
  launches.wait(milliseconds(20));
  EXPECT_GE(Clock::now() - begin, milliseconds(20));
}

}  // namespace
}  // namespace lathe
