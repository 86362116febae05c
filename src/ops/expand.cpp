// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_expand(InferContext& context) {
  LATHE_ASSIGN(const int64_t length, list_length(context, 1, "expand: shape"));
  // A size that is not known is 1 here, and what comes of it is not known.
  Shape sizes(static_cast<size_t>(length), Expr(1));
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (const std::optional<Expr> size = context.element(1, i)) sizes[i] = *size;
    if (sizes[i].is_constant() && *sizes[i].as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "expand: the shape {} has a negative dimension", to_string(sizes));
  }
  LATHE_ASSIGN(Shape output, broadcast(context, context.shape(0), sizes));
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!context.element(1, i)) output[output.size() - sizes.size() + i] = context.new_symbol("expand_dim", i);
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
