// SPDX-License-Identifier: Apache-2.0
#include "runtime/refit_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace lathe {
namespace {

// An output allocator may use the engine, and is called while a run lasts.
TEST(RefitGate, ARunMayBeginInsideAnotherThoughARefitWaits) {
  RefitGate gate;
  std::atomic<bool> refitted = false;
  std::thread refit;
  {
    const RefitGate::Lease outer = gate.enter_run();
    refit = std::thread([&] {
      const RefitGate::Lease lease = gate.enter_refit();
      refitted = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the refit waits now
    const RefitGate::Lease inner = gate.enter_run();
    EXPECT_FALSE(refitted);
  }
  refit.join();
  EXPECT_TRUE(refitted);
}

TEST(RefitGate, RunsOfOthersWaitForARefitThatWaits) {
  RefitGate gate;
  std::atomic<bool> refitted = false, ran_before = false;
  std::thread refit, run;
  {
    const RefitGate::Lease outer = gate.enter_run();
    refit = std::thread([&] {
      const RefitGate::Lease lease = gate.enter_refit();
      refitted = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    run = std::thread([&] {
      const RefitGate::Lease lease = gate.enter_run();
      ran_before = !refitted;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  refit.join();
  run.join();
  EXPECT_FALSE(ran_before);
}

}  // namespace
}  // namespace lathe
