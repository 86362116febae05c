// SPDX-License-Identifier: Apache-2.0
// Runs an operation again and again, failing its first allocation, then its second, and so on until one run needs no
// more. replaced_allocation.cpp stands in for the functions that allocate.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <new>

namespace lathe {

// Counts on the thread that runs the operation: what worker threads do at the same time is not repeatable.
struct AllocationCounter {
  bool armed = false;
  long until_failure = 0;  // allocations that succeed before one fails
  bool failed = false;
  long live = 0;  // blocks that were not given back

  bool allow() {
    if (!armed || until_failure-- > 0) return true;
    armed = false;  // only this one: reporting the failure may allocate
    failed = true;
    return false;
  }
};
inline thread_local AllocationCounter allocation_counter;
inline std::atomic<long> live_blocks = 0;  // of all threads

enum class Outcome { done, refused, threw };

struct Attempt {
  Outcome outcome = Outcome::threw;
  bool failed = false;  // an allocation did
  long lost = 0;        // blocks that the thread did not give back
};

// With allocation `n` failing, if there are so many.
inline Attempt attempt(long n, const std::function<bool()>& operation) {
  Attempt result;
  const long live = allocation_counter.live;
  allocation_counter = {true, n, false, live};
  try {
    result.outcome = operation() ? Outcome::done : Outcome::refused;
  } catch (const std::bad_alloc&) {
  }
  result.failed = allocation_counter.failed;
  allocation_counter.armed = false;
  result.lost = allocation_counter.live - live;
  return result;
}

// `operation` says whether it succeeded. A failed allocation may end in an error or in std::bad_alloc, which the public
// interface turns into an error; it may not crash, and it may not look like success with wrong data (`operation`
// checks).
inline long sweep_allocations(const std::function<bool()>& operation,
                              Attempt (*attempt_with)(long, const std::function<bool()>&) = &attempt) {
  constexpr long kNone = std::numeric_limits<long>::max();
  for (int warm_up = 0; warm_up < 2; ++warm_up)  // of what is made once
    EXPECT_EQ(attempt_with(kNone, operation).outcome, Outcome::done) << "without failures";
  for (long n = 0;; ++n) {
    const Attempt result = attempt_with(n, operation);
    EXPECT_EQ(result.lost, 0) << "allocation " << n << " failed, and memory is lost";
    if (!result.failed) {
      EXPECT_EQ(result.outcome, Outcome::done);
      return n;
    }
    if (::testing::Test::HasFailure()) return n;
  }
}

}  // namespace lathe
