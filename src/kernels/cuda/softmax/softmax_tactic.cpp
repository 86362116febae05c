// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over any axis.
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {
namespace {

Normalization normalization_of(const Problem& problem) {
  const auto& attrs = problem.attrs<SoftmaxAttrs>();
  const Operand& x = problem.inputs[0];
  Normalization normalization{IndexSpace(x), attrs.log ? "Exponentials<true>" : "Exponentials<false>", "", 8};
  IndexSpace& space = normalization.space;
  space.add(problem.outputs[0]);
  for (const Operand& operand : problem.operands) space.add(operand);
  add_prologue_operands(problem, space);
  space.reduce(static_cast<size_t>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis));
  space.simplify();
  return normalization;
}

}  // namespace

Matched match_softmax(const Problem& problem) {
  if (!problem.is(OpKind::softmax)) return refuse("not a softmax");
  if (auto reason = refuse_row_problem(problem)) return refuse(*std::move(reason));
  if (auto reason = refuse_types(problem)) return refuse(*std::move(reason));
  return match_rows(problem, normalization_of(problem), {{StepInput::input, 0}});
}

}  // namespace lathe::cuda
