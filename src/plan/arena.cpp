// SPDX-License-Identifier: Apache-2.0
#include "plan/arena.h"

#include <algorithm>

#include "base/divide.h"

namespace lathe::plan {
namespace {

constexpr size_t kAlignment = 64;  // of buffers

Arena side_by_side(std::span<const Lifetime> buffers, std::span<const Lifetime> scratch, size_t alignment) {
  std::vector<Lifetime> all(buffers.begin(), buffers.end());
  const size_t slack = std::max(alignment, kAlignment) - kAlignment;  // for an offset that is rounded up
  for (const Lifetime& s : scratch)
    if (s.bytes > 0) all.push_back({s.bytes > SIZE_MAX - slack ? SIZE_MAX : s.bytes + slack, s.first, s.last});
  Arena arena;
  arena.offsets = plan_memory(all, &arena.bytes, kAlignment);
  size_t next = buffers.size();
  for (const Lifetime& s : scratch)
    arena.scratch.push_back(s.bytes > 0 ? round_up(arena.offsets[next++], alignment) : 0);
  arena.offsets.resize(buffers.size());
  return arena;
}

Arena one_behind_the_other(std::span<const Lifetime> buffers, std::span<const Lifetime> scratch, size_t alignment) {
  Arena arena;
  arena.offsets = plan_memory(buffers, &arena.bytes, kAlignment);
  size_t behind = 0;
  arena.scratch = plan_memory(scratch, &behind, alignment);
  if (arena.bytes > SIZE_MAX - alignment || behind > SIZE_MAX - round_up(arena.bytes, alignment)) {
    arena.bytes = SIZE_MAX;
    return arena;
  }
  for (size_t& offset : arena.scratch) offset += round_up(arena.bytes, alignment);
  if (behind > 0) arena.bytes = round_up(arena.bytes, alignment) + behind;
  return arena;
}

}  // namespace

Arena arrange(std::span<const Lifetime> buffers, std::span<const Lifetime> scratch, size_t alignment) {
  Arena beside = side_by_side(buffers, scratch, alignment);
  std::vector<Lifetime> all(buffers.begin(), buffers.end());
  all.insert(all.end(), scratch.begin(), scratch.end());
  if (scratch.empty() || beside.bytes <= max_live_bytes(all)) return beside;
  Arena behind = one_behind_the_other(buffers, scratch, alignment);
  return behind.bytes < beside.bytes ? behind : beside;
}

std::vector<Range> ranges_of(const Profile& profile) {
  std::vector<Range> ranges;
  for (const SymbolProfile& symbol : profile.symbols) ranges.push_back({symbol.min, symbol.max});
  return ranges;
}

std::optional<int64_t> largest(const Expr& expr, std::span<const Range> ranges) {
  const int64_t most = expr.range(ranges).max;
  return most == Range::kUnbounded ? std::nullopt : std::optional(std::max<int64_t>(most, 0));
}

std::optional<Arena> largest_arena(const Plan& plan, size_t profile, std::span<const Lifetime> scratch,
                                   size_t alignment) {
  const std::vector<Range> ranges = ranges_of(plan.profiles[profile]);
  std::vector<Lifetime> lifetimes;
  for (const Buffer& buffer : plan.buffers) {
    const std::optional<int64_t> bytes = largest(buffer.bytes, ranges);
    if (!bytes) return std::nullopt;
    lifetimes.push_back({static_cast<size_t>(*bytes), buffer.first, buffer.last});
  }
  Arena arena = arrange(lifetimes, scratch, alignment);
  if (arena.bytes > SIZE_MAX / 2) return std::nullopt;
  return arena;
}

}  // namespace lathe::plan
