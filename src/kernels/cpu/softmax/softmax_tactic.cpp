// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax: kernel "softmax".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/softmax/softmax.h"

namespace lathe::cpu {

Matched match_softmax(const Problem& problem) {
  if (!problem.is(OpKind::softmax)) return refuse("not a softmax");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b1})) return refuse(*std::move(reason));
  if (!problem.operands.empty()) return refuse("the epilogue reads other tensors");
  if (problem.inputs[0].rank() == 0) return refuse("a scalar");
  if (auto reason = refuse_non_f32(problem, {.levels = true})) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<SoftmaxAttrs>();
  const SoftmaxParams params{axis_from_start(attrs.axis, problem.inputs[0]), attrs.log};
  return match_one(emission_of(problem, params, {0}), predicted_us(problem, {.vectors = 60}));
}

}  // namespace lathe::cpu
