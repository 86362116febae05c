// SPDX-License-Identifier: Apache-2.0
// Reductions of elements other than f32: kernel "reduce_elements".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/reduce/reduction_tactic.h"

namespace lathe::cpu {

Matched match_reduce_elements(const Problem& problem) {
  if (!problem.is(OpKind::reduce)) return refuse("not a reduction");
  if (problem.inputs[0].dtype == DType::f32) return refuse("reductions of f32 have a kernel of their own");
  auto params = reduce_params(problem);
  if (!params) return tl::unexpected(std::move(params.error()));
  return match_root(problem, *params, {0});
}

}  // namespace lathe::cpu
