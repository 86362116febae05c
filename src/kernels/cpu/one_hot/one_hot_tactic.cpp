// SPDX-License-Identifier: Apache-2.0
// Kernel "one_hot".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/one_hot/one_hot.h"

namespace lathe::cpu {

Matched match_one_hot(const Problem& problem) {
  if (!problem.is(OpKind::one_hot)) return refuse("not a one-hot encoding");
  const int axis = axis_from_start(problem.attrs<OneHotAttrs>().axis, problem.outputs[0]);
  return match_root(problem, OneHotParams{axis}, {0, 2});
}

}  // namespace lathe::cpu
