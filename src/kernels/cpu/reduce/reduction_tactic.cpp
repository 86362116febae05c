// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/reduce/reduction_tactic.h"

#include "kernels/axes_tactic.h"

namespace lathe::cpu {

tl::expected<ReduceParams, Refusal> reduce_params(const Problem& problem) {
  const auto axes = reduced_axes(problem);
  if (!axes) return tl::unexpected(axes.error());
  ReduceParams params{reduction_of(problem.attrs<ReduceAttrs>().op), 0};
  for (const int axis : *axes) params.axes |= 1u << axis;
  return params;
}

}  // namespace lathe::cpu
