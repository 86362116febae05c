// SPDX-License-Identifier: Apache-2.0
// Kernel "range".
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {

Matched match_range(const Problem& problem) {
  if (!problem.is(OpKind::range)) return refuse("not a range");
  return match_root(problem, {}, {0, 2});
}

}  // namespace lathe::cpu
