// SPDX-License-Identifier: Apache-2.0
// How much memory a context needs at most under a profile, whatever shapes it gets.
#pragma once

#include <vector>

#include "plan/arena.h"

namespace lathe {

struct MemoryLimit {
  plan::Arena arena;                    // when everything in it has its largest size: right for all shapes
  std::vector<plan::Lifetime> scratch;  // of steps (plan::StepScratch), those whose sizes only a run can tell included
  size_t activations = 0;               // bytes of buffers alone
  size_t most_scratch = 0;              // bytes that are needed at one time
  std::vector<size_t> dynamic;          // bytes of each dynamic slot; 0 where they are too many to set aside
  std::vector<size_t> bindings;         // of each binding's tensor; 0 likewise

  size_t total() const { return arena.bytes; }
};

}  // namespace lathe
