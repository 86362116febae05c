// SPDX-License-Identifier: Apache-2.0
#include "runtime/overlap_check.h"

#include <algorithm>
#include <tuple>

#include "plan/aliased_bindings.h"

namespace lathe {
namespace {

uintptr_t end_of(const OverlapCheck::Range& range) { return reinterpret_cast<uintptr_t>(range.begin) + range.bytes; }

bool overlaps(const OverlapCheck::Range* earlier, const OverlapCheck::Range& range) {
  return earlier && reinterpret_cast<uintptr_t>(range.begin) < end_of(*earlier);
}

void keep_longest(const OverlapCheck::Range*& longest, const OverlapCheck::Range& range) {
  if (!longest || end_of(range) > end_of(*longest)) longest = &range;
}

}  // namespace

std::optional<uint32_t> OverlapCheck::input_of(uint32_t output) {
  Pair& pair = pairs_[output];
  if (!pair.is_known) pair = {true, plan::aliased_input(plan_, output)};
  return pair.input;
}

// Of each output that is at the address of its input, only the output stays. The ranges are sorted: those of one
// address follow one another.
void OverlapCheck::merge_pairs(std::vector<Range>& ranges) {
  for (size_t first = 0, last; first < ranges.size(); first = last) {
    for (last = first + 1; last < ranges.size() && ranges[last].begin == ranges[first].begin;) ++last;
    if (last - first < 2) continue;
    for (size_t i = first; i < last; ++i) {
      if (!is_output(ranges[i])) continue;
      const std::optional<uint32_t> input = input_of(ranges[i].binding);
      for (size_t k = first; input && k < last; ++k)
        if (ranges[k].binding == *input) ranges[k].bytes = 0;
    }
  }
  std::erase_if(ranges, [](const Range& range) { return range.bytes == 0; });
}

Result<> OverlapCheck::refuse(const Range& output, const Range& other) const {
  const plan::Binding& binding = plan_.bindings[output.binding];
  const plan::Binding& second = plan_.bindings[other.binding];
  const uint32_t last = std::max(output.binding, other.binding);
  return fail(ErrorCode::binding_invalid,
              "output '{}' ({} bytes at {}) lies over {} '{}' ({} bytes at {}), and the engine does not update the one "
              "in place of the other: a run would {}; give '{}' memory of its own "
              "(getAliasedInputTensor() names the input whose address an output may have)",
              binding.name, output.bytes, static_cast<const void*>(output.begin), second.is_input ? "input" : "output",
              second.name, other.bytes, static_cast<const void*>(other.begin),
              second.is_input ? "overwrite what it still reads" : "keep one of the two results",
              plan_.bindings[last].name);
}

Result<> OverlapCheck::check(std::vector<Range>& ranges) {
  std::erase_if(ranges, [](const Range& range) { return !range.begin || range.bytes == 0; });
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tuple(reinterpret_cast<uintptr_t>(a.begin), a.binding) <
           std::tuple(reinterpret_cast<uintptr_t>(b.begin), b.binding);
  });
  merge_pairs(ranges);
  const Range *input = nullptr, *output = nullptr;  // of those before, that which ends last
  for (const Range& range : ranges) {
    if (overlaps(output, range)) return is_output(range) ? refuse(range, *output) : refuse(*output, range);
    if (is_output(range) && overlaps(input, range)) return refuse(range, *input);
    keep_longest(is_output(range) ? output : input, range);
  }
  return {};
}

}  // namespace lathe
