// SPDX-License-Identifier: Apache-2.0
// Where buffers lie, and beside them what single steps work in.
#pragma once

#include <optional>
#include <span>

#include "plan/memory_planner.h"
#include "plan/plan.h"

namespace lathe::plan {

struct Arena {
  std::vector<size_t> offsets;  // by buffer
  std::vector<size_t> scratch;  // offsets, by lifetime of scratch
  size_t bytes = 0;
};

// Scratch lies where buffers leave room while it is needed, and behind all of them where that takes less in the end.
// Its offsets are multiples of `alignment`, a power of 2.
Arena arrange(std::span<const Lifetime> buffers, std::span<const Lifetime> scratch, size_t alignment);

// When each buffer has its largest size under a profile: right for all shapes. Nullopt when some size has no limit.
std::optional<Arena> largest_arena(const Plan& plan, size_t profile, std::span<const Lifetime> scratch = {},
                                   size_t alignment = 64);

// The largest that an expression becomes, at least 0; nullopt when it has no limit.
std::optional<int64_t> largest(const Expr& expr, std::span<const Range> ranges);

// Of a profile's symbols.
std::vector<Range> ranges_of(const Profile& profile);

}  // namespace lathe::plan
