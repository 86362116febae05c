// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

// Extents of the parts when the sizes are given.
Result<> given_parts(InferContext& context, const Expr& extent, std::vector<Expr>& parts) {
  LATHE_ASSIGN(const int64_t count, list_length(context, 1, "split: sizes"));
  if (count != static_cast<int64_t>(parts.size()))
    return fail(ErrorCode::shape_mismatch, "split: {} sizes for {} outputs", count, parts.size());
  const std::vector<Expr>* sizes = context.elements(1);
  Expr total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = sizes ? (*sizes)[i] : context.new_symbol("split_size");
    total += parts[i];
    if (parts[i].is_constant() && *parts[i].as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "split: size {} is {}, expected 0 or more", i, *parts[i].as_constant());
  }
  if (sizes && !context.assume_equal(total, extent))
    return fail(ErrorCode::shape_mismatch, "split: the sizes add up to {}, but the axis has {} elements",
                total.to_string(), extent.to_string());
  return {};
}

void equal_parts(const InferContext& context, const Expr& extent, std::vector<Expr>& parts) {
  const Expr size = ceildiv(extent, static_cast<int64_t>(parts.size()));
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = larger(context, smaller(context, size, extent - size * static_cast<int64_t>(i)), 0);
}

}  // namespace

Result<> infer_split(InferContext& context) {
  const Shape& input = context.shape(0);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<SplitAttrs>().axis, context.rank(0), "split: axis"));
  const Expr& extent = input[static_cast<size_t>(axis)];
  std::vector<Expr> parts(context.num_outputs());
  if (context.has(1))
    LATHE_TRY(given_parts(context, extent, parts));
  else
    equal_parts(context, extent, parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape output = input;
    output[static_cast<size_t>(axis)] = parts[i];
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
