// SPDX-License-Identifier: Apache-2.0
// Blocks that share a result: each leaves its part in memory, and the one that comes last makes the result of them. No
// block waits for another. Parts are combined in their own order, not in that of arrival: results are equal every time.
#pragma once

#include "lib/intrinsics.cuh"

// True in the last of `blocks` blocks that come to `counter`, which is 0 before the first and after the last. All
// threads of a block call it once they have stored their share of its part; load_l2() reads the others' then.
LATHE_DEVICE bool comes_last(unsigned* counter, int blocks) {
  barrier();  // the whole part is stored
  bool last = false;
  if (thread_x() == 0) {
    const auto before = static_cast<unsigned>(blocks - 1);
    memory_fence();  // seen by all before it is counted
    last = atomic_count(counter, before) == before;
    memory_fence();  // and those that were counted, before they are read
  }
  return barrier_any(last);
}
