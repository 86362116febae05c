// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

// The depth as a dimension: computed, constant, or only known while running.
Result<Expr> depth_of(InferContext& context) {
  if (!context.assume_equal(volume(context.shape(1)), 1))
    return fail(ErrorCode::shape_mismatch, "one_hot: depth must be one number, but has shape {}",
                to_string(context.shape(1)));
  if (const Tensor* depth = context.constant(1)) {
    const int64_t value = depth->at(0);
    if (value < 0) return fail(ErrorCode::execution_failed, "one_hot: depth is {}, expected 0 or more", value);
    return Expr(value);
  }
  const std::vector<Expr>* elements = context.elements(1);
  return elements ? (*elements)[0] : context.new_symbol("one_hot_depth");
}

}  // namespace

Result<> infer_one_hot(InferContext& context) {
  LATHE_TRY(require_numeric(context, 0));
  LATHE_TRY(require_rank(context, 2, 1, 1));
  if (!context.assume_equal(context.shape(2)[0], 2))
    return fail(ErrorCode::shape_mismatch, "one_hot: values must be [off, on], but has shape {}",
                to_string(context.shape(2)));
  LATHE_ASSIGN(const int64_t axis,
               normalize_axis(context.attrs<OneHotAttrs>().axis, context.rank(0) + 1, "one_hot: axis"));
  LATHE_ASSIGN(const Expr depth, depth_of(context));
  Shape output = context.shape(0);
  output.insert(output.begin() + axis, depth);
  context.set(0, context.dtype(2), std::move(output));
  return {};
}

// Indices outside [-depth, depth) leave their row at the off value.
Result<> eval_one_hot(EvalContext& context) {
  Tensor& output = context.output(0);
  const Tensor& values = context.input(2);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<OneHotAttrs>().axis, output.rank()));
  const int64_t depth = output.dims()[static_cast<size_t>(axis)];
  const int64_t inner = row_major_strides(output.dims())[static_cast<size_t>(axis)];
  const Ints indices = to_ints(context.input(0));
  for_size(size_of(output.dtype()), [&](auto zero) {
    using T = decltype(zero);
    fill_elements(sizeof(T), values.data(), output.mutable_data(), output.volume());
    const T on = values.as<T>()[1];
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t index = indices[i] < 0 ? indices[i] + depth : indices[i];
      if (index < 0 || index >= depth) continue;
      const int64_t outer = static_cast<int64_t>(i) / inner, column = static_cast<int64_t>(i) % inner;
      output.mutable_as<T>()[(outer * depth + index) * inner + column] = on;
    }
  });
  return {};
}

}  // namespace lathe
