// SPDX-License-Identifier: Apache-2.0
// The arena when each of its buffers has its largest size under a profile: an arrangement that is right for all shapes.
#pragma once

#include <optional>

#include "plan/plan.h"

namespace lathe::plan {

struct Arena {
  std::vector<size_t> offsets;  // by buffer
  size_t bytes = 0;
};

// Nullopt when some size has no limit.
std::optional<Arena> largest_arena(const Plan& plan, size_t profile);

// The largest that an expression becomes, at least 0; nullopt when it has no limit.
std::optional<int64_t> largest(const Expr& expr, std::span<const Range> ranges);

// Of a profile's symbols.
std::vector<Range> ranges_of(const Profile& profile);

}  // namespace lathe::plan
