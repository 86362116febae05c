// SPDX-License-Identifier: Apache-2.0
// How much memory a context needs at most under a profile, whatever shapes it gets.
#pragma once

#include <cstddef>
#include <vector>

namespace lathe {

struct MemoryLimit {
  std::vector<size_t> offsets;   // of the arena's buffers when each has its largest size: right for all shapes
  size_t arena = 0;              // bytes
  size_t workspace = 0;          // bytes behind the arena; steps whose sizes only a run can tell included
  std::vector<size_t> dynamic;   // bytes of each dynamic slot; 0 where they are too many to set aside
  std::vector<size_t> bindings;  // of each binding's tensor; 0 likewise

  size_t total() const { return arena + workspace; }
};

}  // namespace lathe
