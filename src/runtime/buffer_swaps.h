// SPDX-License-Identifier: Apache-2.0
// Carried values that go from one round of a loop to the next without a copy.
#pragma once

#include <vector>

#include "runtime/context_memory.h"

namespace lathe {

// A result becomes the param of the next round when the two change places: where nothing else that outlives a round
// lies in either's storage. Buffers go back to their places when the loop has ended. One thread at a time, as the
// context that owns it; all that it is made of outlives it.
class BufferSwaps {
 public:
  // Of step `loop`. `slots_begin`: by dynamic slot, the first step that has a value there.
  BufferSwaps(const plan::Plan& plan, size_t loop, std::span<const size_t> slots_begin, ContextMemory& memory);

  bool swaps(size_t carried) const { return pairs_[carried].possible; }
  void next_round();  // each that swaps does
  void restore();

 private:
  struct Pair {
    const plan::TensorDesc* param;
    const plan::TensorDesc* result;
    bool possible;
  };
  void swap_all(plan::StorageKind storage);

  ContextMemory& memory_;
  std::vector<Pair> pairs_;  // by carried value
  bool displaced_ = false;   // buffers are not where they were
};

}  // namespace lathe
