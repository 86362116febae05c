// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {

Result<> infer_branch(InferContext& context) {
  if (context.dtype(0) != DType::boolean || !context.assume_equal(volume(context.shape(0)), 1))
    return fail(ErrorCode::type_mismatch, "branch: the condition must be one bool, but is {}{}",
                name_of(context.dtype(0)), to_string(context.shape(0)));
  if (context.bodies().size() != 2) return fail(ErrorCode::graph_invalid, "branch: it has no two bodies");
  const InferContext::Results &yes = context.bodies()[0], &no = context.bodies()[1];
  if (yes.size() != context.num_outputs() || no.size() != context.num_outputs())
    return fail(ErrorCode::graph_invalid, "branch: its bodies yield {} and {} values, but it has {} results",
                yes.size(), no.size(), context.num_outputs());
  size_t place = 0;
  for (size_t i = 0; i < yes.size(); ++i) {
    if (yes[i].dtype != no[i].dtype || yes[i].rank() != no[i].rank())
      return fail(ErrorCode::type_mismatch, "branch: its bodies yield {}{} and {}{} as value {}", name_of(yes[i].dtype),
                  to_string(yes[i].shape), name_of(no[i].dtype), to_string(no[i].shape), i);
    Shape shape = yes[i].shape;
    for (size_t d = 0; d < shape.size(); ++d, ++place)
      if (!shape[d].is_valid() || shape[d] != no[i].shape[d]) shape[d] = context.new_symbol("chosen_dim", place);
    context.set(i, yes[i].dtype, std::move(shape));
  }
  return {};
}

Result<> eval_branch(EvalContext&) {
  return fail(ErrorCode::op_unsupported, "a branch has no evaluation of its own: a body is run");
}

}  // namespace lathe
