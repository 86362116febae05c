// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"

namespace lathe {

Result<> infer_flatten(InferContext& context) {
  const Shape& input = context.shape(0);
  const int64_t rank = context.rank(0);
  int64_t axis = context.attrs<FlattenAttrs>().axis;
  if (axis < -rank || axis > rank)
    return fail(ErrorCode::attribute_invalid, "flatten: axis {} is outside [-{}, {}] for input {}", axis, rank, rank,
                to_string(input));
  if (axis < 0) axis += rank;
  const auto middle = input.begin() + axis;
  context.set(0, context.dtype(0), {volume(Shape(input.begin(), middle)), volume(Shape(middle, input.end()))});
  if (context.partial_elements(0)) context.set_elements(0, *context.partial_elements(0));
  return {};
}

Result<> eval_flatten(EvalContext& context) { return eval_view(context); }

}  // namespace lathe
