// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/rules.h"

namespace lathe {
namespace {

Error other_branch(bool wanted) {
  return Error{
      ErrorCode::shapes_inconsistent,
      fmt::format("its condition is {}, but the network was made for {}: its branches yield tensors of different "
                  "ranks, and only one of them can be a part of the network",
                  !wanted, wanted),
      {}};
}

}  // namespace

Result<> infer_choose(InferContext& context) {
  if (context.dtype(0) != DType::boolean)
    return fail(ErrorCode::type_mismatch, "choose: the condition must be bool, but is {}", name_of(context.dtype(0)));
  if (!context.assume_equal(volume(context.shape(0)), 1))
    return fail(ErrorCode::shape_mismatch, "choose: the condition must be one element, but has shape {}",
                to_string(context.shape(0)));
  if (!context.has(1) && !context.has(2)) return fail(ErrorCode::graph_invalid, "choose: there is nothing to choose");
  const Tensor* condition = context.constant(0);
  if (!context.has(1) || !context.has(2)) {
    const size_t only = context.has(1) ? 1 : 2;
    if (condition && (condition->at(0) ? 1U : 2U) != only) return fail(other_branch(only == 1));
    context.set(0, context.dtype(only), context.shape(only));
    return {};
  }
  LATHE_TRY(require_same_dtype(context, 1, 2));
  LATHE_TRY(require_rank(context, 2, context.rank(1), context.rank(1)));
  Shape output = context.shape(condition && !condition->at(0) ? 2 : 1);
  if (condition) {
    context.set(0, context.dtype(1), std::move(output));
    return {};
  }
  for (size_t d = 0; d < output.size(); ++d)
    if (output[d] != context.shape(2)[d]) output[d] = context.new_symbol("chosen_dim", d);
  context.set(0, context.dtype(1), std::move(output));
  return {};
}

Result<> eval_choose(EvalContext& context) {
  const bool condition = context.input(0).as<bool>()[0];
  if (!context.has(condition ? 1 : 2)) return fail(other_branch(!condition));
  const Tensor& chosen = context.input(condition ? 1 : 2);
  if (chosen.bytes() > 0) std::memcpy(context.output(0).mutable_data(), chosen.data(), chosen.bytes());
  return {};
}

}  // namespace lathe
