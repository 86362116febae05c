// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/reduce/reduction_tactic.h"

namespace lathe::cpu {

tl::expected<ReduceParams, Refusal> reduce_params(const Problem& problem) {
  const auto& attrs = problem.attrs<ReduceAttrs>();
  const int rank = problem.inputs[0].rank();
  if (rank == 0) return refuse("a scalar");
  Ints axes = attrs.axes;
  if (problem.has_input(1)) {
    const Tensor* list = problem.inputs[1].constant;
    if (!list) return refuse("its axes are not constant");
    axes.clear();
    for (int64_t i = 0; i < list->volume(); ++i) axes.push_back(list->at(i));
  }
  if (axes.empty() && attrs.noop_with_empty_axes) return refuse("its axes leave the input as it is");
  ReduceParams params{reduction_of(attrs.op), axes.empty() ? (1u << rank) - 1 : 0};
  for (const int64_t axis : axes) params.axes |= 1u << (axis < 0 ? axis + rank : axis);
  return params;
}

}  // namespace lathe::cpu
