// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

Result<> given_sizes(InferContext& context, const Expr& extent, std::vector<Expr>& sizes) {
  LATHE_ASSIGN(const int64_t count, list_length(context, 1, "split: sizes"));
  if (count != static_cast<int64_t>(sizes.size()))
    return fail(ErrorCode::shape_mismatch, "split: {} sizes for {} outputs", count, sizes.size());
  Expr total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::optional<Expr> given = context.element(1, i);
    sizes[i] = given ? *given : context.new_symbol("split_size", i);
    total += sizes[i];
    if (sizes[i].is_constant() && *sizes[i].as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "split: size {} is {}, expected 0 or more", i, *sizes[i].as_constant());
  }
  if (context.elements(1) && !context.assume_equal(total, extent))
    return fail(ErrorCode::shape_mismatch, "split: the sizes add up to {}, but the axis has {} elements",
                total.to_string(), extent.to_string());
  return {};
}

void equal_sizes(const InferContext& context, const Expr& extent, std::vector<Expr>& sizes) {
  const Expr size = ceildiv(extent, static_cast<int64_t>(sizes.size()));
  for (size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = larger(context, smaller(context, size, extent - size * static_cast<int64_t>(i)), 0);
}

}  // namespace

Result<> infer_split(InferContext& context) {
  const Shape& input = context.shape(0);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<SplitAttrs>().axis, context.rank(0), "split: axis"));
  const Expr& extent = input[static_cast<size_t>(axis)];
  std::vector<Expr> sizes(context.num_outputs());
  if (context.has(1))
    LATHE_TRY(given_sizes(context, extent, sizes));
  else
    equal_sizes(context, extent, sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape output = input;
    output[static_cast<size_t>(axis)] = sizes[i];
    context.set(i, context.dtype(0), std::move(output));
  }
  move_elements(context);
  return {};
}

Result<> eval_split(EvalContext& context) {
  const Tensor& input = context.input(0);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<SplitAttrs>().axis, input.rank()));
  const size_t size = size_of(input.dtype());
  const Dims strides = row_major_strides(input.dims());
  const char* source = static_cast<const char*>(input.data());
  for (size_t i = 0; i < context.num_outputs(); ++i) {
    Tensor& output = context.output(i);
    copy_box(size, output.dims(), source, strides, output.mutable_data(), row_major_strides(output.dims()));
    source +=
        output.dims()[static_cast<size_t>(axis)] * strides[static_cast<size_t>(axis)] * static_cast<int64_t>(size);
  }
  return {};
}

}  // namespace lathe
