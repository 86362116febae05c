// SPDX-License-Identifier: Apache-2.0
// Runs an operation again and again, failing its first allocation, then its second, and so on until one run needs no
// more. The program that includes this replaces operator new and the C functions that Lathe calls, so include it once.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <functional>
#include <new>

namespace lathe {

// Counts on the thread that runs the operation: what worker threads do at the same time is not repeatable.
struct AllocationCounter {
  bool armed = false;
  long until_failure = 0;  // allocations that succeed before one fails
  bool failed = false;
  long live = 0;  // blocks from operator new that were not given back

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
inline long sweep_allocations(const std::function<bool()>& operation, long stride = 1) {
  EXPECT_TRUE(operation()) << "without failures";  // also warms up what is made once
  EXPECT_TRUE(operation());
  for (long n = 0;; n += stride) {
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

inline void* lathe_test_allocate(std::size_t size, std::size_t alignment) {
  if (!lathe::allocation_counter.allow()) return nullptr;
  return alignment <= alignof(std::max_align_t) ? std::malloc(size ? size : 1) : memalign(alignment, size ? size : 1);
}
[[gnu::noinline]] inline void* lathe_test_new(std::size_t size, std::size_t alignment) noexcept {
  void* memory = lathe_test_allocate(size, alignment);
  if (memory) ++lathe::allocation_counter.live;
  return memory;
}
// Kept out of line: inlined into a replaced operator delete, g++ takes the call for a mismatch with operator new.
[[gnu::noinline]] inline void lathe_test_delete(void* memory) noexcept {
  if (memory) --lathe::allocation_counter.live;
  std::free(memory);
}

void* operator new(std::size_t size) {
  if (void* memory = lathe_test_new(size, 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  if (void* memory = lathe_test_new(size, static_cast<std::size_t>(alignment))) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return lathe_test_new(size, 1); }
void operator delete(void* memory) noexcept { lathe_test_delete(memory); }
void operator delete(void* memory, std::size_t) noexcept { lathe_test_delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { lathe_test_delete(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { lathe_test_delete(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { lathe_test_delete(memory); }

// What Lathe allocates by other means. Given back by free(), so it is not in the count of live blocks.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return lathe_test_allocate(size, alignment);
}
