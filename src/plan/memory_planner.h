// SPDX-License-Identifier: Apache-2.0
// Places buffers in one arena. A pure function; docs/decisions says why it lives here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lathe::plan {

// A buffer that is needed from the start of step `first` to the end of step `last`.
struct Lifetime {
  size_t bytes = 0;
  uint32_t first = 0;
  uint32_t last = 0;
};

// Offsets, parallel to `buffers` and multiples of `alignment` (a power of 2), such that no two buffers that live at the
// same step overlap. *total gets the size of the arena; SIZE_MAX when the sizes do not fit an address space.
// Deterministic. Takes a few milliseconds at most for 1,000 buffers.
std::vector<size_t> plan_memory(std::span<const Lifetime> buffers, size_t* total, size_t alignment = 64);

// The most bytes that live at one step: no plan is smaller. SIZE_MAX on overflow.
size_t max_live_bytes(std::span<const Lifetime> buffers, size_t alignment = 64);

}  // namespace lathe::plan
