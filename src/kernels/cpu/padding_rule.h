// SPDX-License-Identifier: Apache-2.0
// Padding of windows that slide over an axis, as kernels' parameters state it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lathe::cpu {

// Numbers are written into plans.
enum class PaddingRule : int8_t {
  given = 0,
  // What is needed so that the output has the extent that it has; one half of it, rounded down or up, at the beginning.
  lower_half = 1,
  upper_half = 2,
};

// At the beginning, of what is needed by a rule that does not give it.
inline int64_t share_of(PaddingRule rule, int64_t needed) {
  const int64_t total = std::max<int64_t>(needed, 0);
  return rule == PaddingRule::lower_half ? total / 2 : total - total / 2;
}

}  // namespace lathe::cpu
