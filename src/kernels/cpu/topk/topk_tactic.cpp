// SPDX-License-Identifier: Apache-2.0
// Kernel "topk".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/topk/topk.h"

namespace lathe::cpu {

Matched match_topk(const Problem& problem) {
  if (!problem.is(OpKind::topk)) return refuse("not a selection of the best");
  const auto& attrs = problem.attrs<TopkAttrs>();
  const int axis = axis_from_start(attrs.axis, problem.inputs[0]);
  return match_root(problem, TopkParams{axis, attrs.largest}, {0}, {.further_results = true});
}

}  // namespace lathe::cpu
