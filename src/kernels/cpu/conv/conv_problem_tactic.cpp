// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/conv_problem_tactic.h"

#include "kernels/conv_shape_tactic.h"

namespace lathe::cpu {

tl::expected<ConvShape, Refusal> conv_shape(const Problem& problem) {
  ConvShape shape;
  if (auto reason = read_conv_shape(problem, shape)) return refuse(*std::move(reason));
  for (const Expr& channels : {problem.inputs[1].dims[0], problem.inputs[1].dims[1]})
    if (!channels.is_constant()) return refuse("the channels are not known while building");
  return shape;
}

conv::ConvProblem conv_problem(const Problem& problem, const ConvShape& shape) {
  const Dims &in = problem.inputs[0].opt_dims, &out = problem.outputs[0].opt_dims;
  conv::ConvProblem p{.shape = shape, .batch = out[0]};
  std::copy(in.begin() + 2, in.end(), p.in.end() - shape.spatial);
  std::copy(out.begin() + 2, out.end(), p.out.end() - shape.spatial);
  return p;
}

}  // namespace lathe::cpu
