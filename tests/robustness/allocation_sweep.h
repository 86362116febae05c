// SPDX-License-Identifier: Apache-2.0
// Runs an operation again and again, failing its first allocation, then its second, and so on until one run needs no
// more. replaced_allocation.cpp stands in for the functions that allocate.
#pragma once

#include <gtest/gtest.h>

#include <functional>
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

enum class Outcome { done, refused, threw };

// `operation` says whether it succeeded. A failed allocation may end in an error or in std::bad_alloc, which the public
// interface turns into an error; it may not crash, and it may not look like success with wrong data (`operation`
// checks).
inline long sweep_allocations(const std::function<bool()>& operation) {
  EXPECT_TRUE(operation()) << "without failures";  // also warms up what is made once
  EXPECT_TRUE(operation());
  for (long n = 0;; ++n) {
    const long live = allocation_counter.live;
    allocation_counter = {true, n, false, live};
    Outcome outcome = Outcome::threw;
    try {
      outcome = operation() ? Outcome::done : Outcome::refused;
    } catch (const std::bad_alloc&) {
    }
    const bool failed = allocation_counter.failed;
    allocation_counter.armed = false;
    EXPECT_EQ(allocation_counter.live, live) << "allocation " << n << " failed, and memory is lost";
    if (!failed) {
      EXPECT_EQ(outcome, Outcome::done);
      return n;
    }
    if (::testing::Test::HasFailure()) return n;
  }
}

}  // namespace lathe
