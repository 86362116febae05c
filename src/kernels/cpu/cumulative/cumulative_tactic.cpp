// SPDX-License-Identifier: Apache-2.0
// Kernel "cumulative".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/cumulative/cumulative.h"

namespace lathe::cpu {

Matched match_cumulative(const Problem& problem) {
  if (!problem.is(OpKind::cumulative)) return refuse("not a cumulative sum or product");
  const auto& attrs = problem.attrs<CumulativeAttrs>();
  const cumulative::Scan scan{attrs.op == CumulativeOp::prod, attrs.exclusive, attrs.reverse};
  return match_root(problem, scan, {0, 1}, {}, {.clocks = 3});
}

}  // namespace lathe::cpu
