// SPDX-License-Identifier: Apache-2.0
// Elements named by indices: kernel "gather".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gather/gather.h"

namespace lathe::cpu {

Matched match_gather(const Problem& problem) {
  const auto match = [&](GatherMode mode, int64_t axis) {
    return match_root(problem, GatherParams{mode, axis_from_start(axis, problem.inputs[0])}, {0, 1});
  };
  if (problem.is(OpKind::gather)) return match(GatherMode::gather, problem.attrs<GatherAttrs>().axis);
  if (problem.is(OpKind::gather_elements))
    return match(GatherMode::elements, problem.attrs<GatherElementsAttrs>().axis);
  if (problem.is(OpKind::gather_nd)) return match(GatherMode::tuples, problem.attrs<GatherNdAttrs>().batch_dims);
  return refuse("not a gather");
}

}  // namespace lathe::cpu
