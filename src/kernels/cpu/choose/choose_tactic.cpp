// SPDX-License-Identifier: Apache-2.0
// One of two tensors: kernel "choose".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {

Matched match_choose(const Problem& problem) {
  if (!problem.is(OpKind::choose)) return refuse("not a choice");
  if (!problem.has_input(1) || !problem.has_input(2)) return refuse("there is one operand alone");
  return match_root(problem, {}, all_inputs(problem));
}

}  // namespace lathe::cpu
