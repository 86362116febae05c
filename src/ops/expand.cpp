// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_expand(InferContext& context) {
  LATHE_ASSIGN(const int64_t length, list_length(context, 1, "expand: shape"));
  const std::vector<Expr>* elements = context.elements(1);
  if (!elements) {
    Shape output(static_cast<size_t>(std::max<int64_t>(length, context.rank(0))));
    for (Expr& dim : output) dim = context.new_symbol("expand_dim");
    context.set(0, context.dtype(0), std::move(output));
    return {};
  }
  for (const Expr& dim : *elements)
    if (dim.is_constant() && *dim.as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "expand: the shape {} has a negative dimension", to_string(*elements));
  LATHE_ASSIGN(Shape output, broadcast(context, context.shape(0), *elements));
  context.set(0, context.dtype(0), std::move(output));
  move_elements(context);
  return {};
}

Result<> eval_expand(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  copy_box(size_of(input.dtype()), output.dims(), input.data(), broadcast_strides(input.dims(), output.dims()),
           output.mutable_data(), row_major_strides(output.dims()));
  return {};
}

}  // namespace lathe
