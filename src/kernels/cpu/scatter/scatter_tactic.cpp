// SPDX-License-Identifier: Apache-2.0
// Updates at places that indices name: kernel "scatter".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/scatter/scatter.h"

namespace lathe::cpu {
namespace {

static_assert(static_cast<int>(ScatterReduction::min) == static_cast<int>(ScatterParams::Reduction::min));
ScatterParams::Reduction reduction_of(ScatterReduction reduction) {
  return static_cast<ScatterParams::Reduction>(reduction);
}

}  // namespace

Matched match_scatter(const Problem& problem) {
  if (problem.is(OpKind::scatter_nd)) {
    const ScatterReduction reduction = problem.attrs<ScatterNdAttrs>().reduction;
    return match_root(problem, ScatterParams{ScatterMode::tuples, 0, reduction_of(reduction)}, {0, 1, 2});
  }
  if (!problem.is(OpKind::scatter_elements)) return refuse("not a scatter");
  const auto& attrs = problem.attrs<ScatterElementsAttrs>();
  const int axis = axis_from_start(attrs.axis, problem.inputs[0]);
  return match_root(problem, ScatterParams{ScatterMode::elements, axis, reduction_of(attrs.reduction)}, {0, 1, 2});
}

}  // namespace lathe::cpu
