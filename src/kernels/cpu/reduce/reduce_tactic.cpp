// SPDX-License-Identifier: Apache-2.0
// Reductions over known axes: kernel "reduce".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/reduce/reduction_tactic.h"

namespace lathe::cpu {

Matched match_reduce(const Problem& problem) {
  if (!problem.is(OpKind::reduce)) return refuse("not a reduction");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b1})) return refuse(*std::move(reason));
  if (problem.inputs[0].dtype != DType::f32)
    return refuse(fmt::format("its input is {}", name_of(problem.inputs[0].dtype)));
  auto params = reduce_params(problem);
  if (!params) return tl::unexpected(std::move(params.error()));
  return match_one(emission_of(problem, *params, {0}), predicted_us(problem));
}

}  // namespace lathe::cpu
