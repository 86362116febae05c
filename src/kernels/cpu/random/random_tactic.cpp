// SPDX-License-Identifier: Apache-2.0
// Kernel "random".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/random/random.h"
#include "ops/random_range.h"

namespace lathe::cpu {

Matched match_random(const Problem& problem) {
  if (!problem.is(OpKind::random)) return refuse("no random numbers");
  const auto& attrs = problem.attrs<RandomAttrs>();
  const bool normal = attrs.op == RandomOp::normal;
  const double last = normal ? 0 : last_in_range(attrs);
  return match_root(problem, RandomParams{normal, attrs.a, attrs.b, last, random_digits(attrs.dtype)}, {1});
}

}  // namespace lathe::cpu
