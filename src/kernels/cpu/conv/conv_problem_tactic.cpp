// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/conv_problem_tactic.h"

#include "kernels/conv_shape_tactic.h"

namespace lathe::cpu {

tl::expected<ConvShape, Refusal> conv_shape(const Problem& problem) {
  const int rank = problem.inputs[0].rank();
  if (rank < 3 || rank > 5) return refuse(fmt::format("{} spatial dimensions, 1 to 3 are handled", rank - 2));
  ConvShape shape;
  if (auto reason = read_conv_shape(problem, shape)) return refuse(*std::move(reason));
  for (const Expr& channels : {problem.inputs[1].dims[0], problem.inputs[1].dims[1]})
    if (!channels.is_constant()) return refuse("the channels are not known while building");
  return shape;
}

conv::ConvProblem conv_problem(const Problem& problem, const ConvShape& shape) {
  const Dims& out = problem.outputs[0].opt_dims;
  conv::ConvProblem p{.shape = shape, .batch = out[0]};
  std::copy(out.begin() + 2, out.end(), p.out.end() - (out.end() - out.begin() - 2));
  return p;
}

}  // namespace lathe::cpu
