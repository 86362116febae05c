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

// Whether another thread's run began before a refit that had `patience` to begin to wait.
bool run_begins_before_a_refit(std::chrono::milliseconds patience) {
  RefitGate gate;
  std::atomic<bool> refitted = false, ran_before = false;
  std::thread refit, run;
  {
    const RefitGate::Lease outer = gate.enter_run();
    refit = std::thread([&] {
      const RefitGate::Lease lease = gate.enter_refit();
      refitted = true;
    });
    std::this_thread::sleep_for(patience);
    run = std::thread([&] {
      const RefitGate::Lease lease = gate.enter_run();
      ran_before = !refitted;
    });
    std::this_thread::sleep_for(patience);
  }
  refit.join();
  run.join();
  return ran_before;
}

TEST(RefitGate, RunsOfOthersWaitForARefitThatWaits) {
  auto patience = std::chrono::milliseconds(10);  // threads of a busy machine come late
  while (run_begins_before_a_refit(patience) && patience < std::chrono::seconds(10)) patience *= 4;
  EXPECT_LT(patience, std::chrono::seconds(10));
}

}  // namespace
}  // namespace lathe
