// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over any axis.
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {

Matched match_softmax(const Problem& problem) {
  if (!problem.is(OpKind::softmax)) return refuse("not a softmax");
  if (auto reason = refuse_row_problem(problem, {.further_program_results = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_types(problem)) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<SoftmaxAttrs>();
  const RowStatistic statistic{attrs.log ? "Exponentials<true>" : "Exponentials<false>", "", 8};
  return match_rows(problem, normalization_along(problem, attrs.axis, statistic));
}

}  // namespace lathe::cuda
