// SPDX-License-Identifier: Apache-2.0
// Kernel "trilu".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/trilu/trilu.h"

namespace lathe::cpu {

Matched match_trilu(const Problem& problem) {
  if (!problem.is(OpKind::trilu)) return refuse("not a triangle");
  const bool has_diagonal = problem.has_input(1);
  return match_root(problem, TriluParams{problem.attrs<TriluAttrs>().upper},
                    has_diagonal ? std::vector<size_t>{0, 1} : std::vector<size_t>{0});
}

}  // namespace lathe::cpu
