// SPDX-License-Identifier: Apache-2.0
#include "plan/arena.h"

#include <algorithm>

#include "plan/memory_planner.h"

namespace lathe::plan {

std::vector<Range> ranges_of(const Profile& profile) {
  std::vector<Range> ranges;
  for (const SymbolProfile& symbol : profile.symbols) ranges.push_back({symbol.min, symbol.max});
  return ranges;
}

std::optional<int64_t> largest(const Expr& expr, std::span<const Range> ranges) {
  const int64_t most = expr.range(ranges).max;
  return most == Range::kUnbounded ? std::nullopt : std::optional(std::max<int64_t>(most, 0));
}

std::optional<Arena> largest_arena(const Plan& plan, size_t profile) {
  const std::vector<Range> ranges = ranges_of(plan.profiles[profile]);
  std::vector<Lifetime> lifetimes;
  for (const Buffer& buffer : plan.buffers) {
    const std::optional<int64_t> bytes = largest(buffer.bytes, ranges);
    if (!bytes) return std::nullopt;
    lifetimes.push_back({static_cast<size_t>(*bytes), buffer.first, buffer.last});
  }
  Arena arena;
  arena.offsets = plan_memory(lifetimes, &arena.bytes);
  if (arena.bytes > SIZE_MAX / 2) return std::nullopt;
  return arena;
}

}  // namespace lathe::plan
