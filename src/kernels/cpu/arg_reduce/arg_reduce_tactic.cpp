// SPDX-License-Identifier: Apache-2.0
// Kernel "arg_reduce".
#include "kernels/cpu/arg_reduce/arg_reduce.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {

Matched match_arg_reduce(const Problem& problem) {
  if (!problem.is(OpKind::arg_reduce)) return refuse("not a search for the largest or smallest");
  const auto& attrs = problem.attrs<ArgReduceAttrs>();
  const int axis = axis_from_start(attrs.axis, problem.inputs[0]);
  return match_root(problem, ArgReduceParams{axis, attrs.largest, attrs.select_last}, {0});
}

}  // namespace lathe::cpu
