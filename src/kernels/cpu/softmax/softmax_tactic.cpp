// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax: kernel "softmax".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/softmax/softmax.h"

namespace lathe::cpu {
namespace {

Matched match_softmax(const Problem& problem) {
  if (!problem.is(OpKind::softmax)) return refuse("not a softmax");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b1})) return refuse(*std::move(reason));
  if (!problem.operands.empty()) return refuse("the epilogue reads other tensors");
  const int rank = problem.inputs[0].rank();
  if (rank == 0) return refuse("a scalar");
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<SoftmaxAttrs>();
  Emission emission;
  emission.params = encode_params(SoftmaxParams{static_cast<int>(attrs.axis) + (attrs.axis < 0 ? rank : 0), attrs.log});
  emission.inputs = {{StepInput::input, 0}};
  return match_one(std::move(emission), predicted_us(problem, {.vectors = 60}));
}

}  // namespace

const Tactic& softmax_tactic() {
  static const FunctionTactic tactic("softmax", match_softmax);
  return tactic;
}

}  // namespace lathe::cpu
