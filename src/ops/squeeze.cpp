// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

// The axes to drop: those of input 1, whose content is known, or every axis of extent 1. One that is not known to be 1
// stays, and must not turn out to be 1: the result would have another number of dimensions.
Result<Ints> squeezed_axes(InferContext& context) {
  const Shape& input = context.shape(0);
  if (context.has(1)) {
    return normalize_axes(*context.constant_elements(1), context.rank(0), "squeeze: axes");
  }
  Ints axes;
  for (size_t i = 0; i < input.size(); ++i) {
    if (input[i] == Expr(1))
      axes.push_back(static_cast<int64_t>(i));
    else if (!input[i].is_constant() && !context.assume(Relation::at_most, 2, input[i]))
      return fail(ErrorCode::shape_unknown,
                  "squeeze: dimension {} of input {} may or may not be 1; list the axes to squeeze", i,
                  to_string(input));
  }
  return axes;
}

}  // namespace

Result<> infer_squeeze(InferContext& context) {
  const Shape& input = context.shape(0);
  if (context.has(1) && !context.constant_elements(1)) {  // only running tells which dims go
    LATHE_ASSIGN(const int64_t count, list_length(context, 1, "squeeze: axes"));
    Shape kept;
    for (int64_t i = count; i < context.rank(0); ++i) kept.push_back(context.new_symbol("squeezed", kept.size()));
    context.set(0, context.dtype(0), std::move(kept));
    return {};
  }
  LATHE_ASSIGN(const Ints axes, squeezed_axes(context));
  Shape output;
  for (size_t i = 0; i < input.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i)))
      output.push_back(input[i]);
    else if (!context.assume_equal(input[i], 1))
      return fail(ErrorCode::shape_mismatch, "squeeze: dimension {} of input {} is not 1", i, to_string(input));
  }
  context.set(0, context.dtype(0), std::move(output));
  if (context.partial_elements(0)) context.set_elements(0, *context.partial_elements(0));
  return {};
}

Result<> eval_squeeze(EvalContext& context) { return eval_view(context); }

}  // namespace lathe
