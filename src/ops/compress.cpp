// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/rules.h"

namespace lathe {

Result<> infer_compress(InferContext& context) {
  const auto& attrs = context.attrs<CompressAttrs>();
  if (context.dtype(1) != DType::boolean)
    return fail(ErrorCode::type_mismatch, "compress: the condition must be bool, but is {}", name_of(context.dtype(1)));
  LATHE_TRY(require_rank(context, 1, 1, 1));
  Shape output(1);
  size_t axis = 0;
  if (!attrs.flat) {
    LATHE_ASSIGN(axis, normalize_axis(attrs.axis, context.rank(0), "compress: axis"));
    output = context.shape(0);
  }
  const Expr count = context.new_symbol("compress_count");
  context.assume(Relation::at_most, count, attrs.flat ? volume(context.shape(0)) : output[axis]);
  output[axis] = count;
  context.set(0, context.dtype(0), std::move(output));
  return {};
}

Result<> eval_compress(EvalContext& context) {
  const auto& attrs = context.attrs<CompressAttrs>();
  const Tensor &input = context.input(0), &condition = context.input(1);
  Dims dims = attrs.flat ? Dims{input.volume()} : input.dims();
  size_t axis = 0;
  if (!attrs.flat) {
    LATHE_ASSIGN(axis, normalize_axis(attrs.axis, input.rank()));
  }
  const int64_t extent = dims[axis];
  Ints kept;
  for (int64_t i = 0; i < condition.volume(); ++i)
    if (condition.as<bool>()[i]) kept.push_back(i);
  if (!kept.empty() && kept.back() >= extent)
    return fail(ErrorCode::execution_failed,
                "compress: the condition selects position {}, but the axis has {} elements", kept.back(), extent);
  const int64_t row = row_major_strides(dims)[axis] * static_cast<int64_t>(size_of(input.dtype()));
  dims[axis] = static_cast<int64_t>(kept.size());
  LATHE_TRY(context.allocate(0, dims));
  Tensor& output = context.output(0);
  if (output.volume() == 0) return {};
  const char* from = static_cast<const char*>(input.data());
  char* to = static_cast<char*>(output.mutable_data());
  for (char* end = to + output.bytes(); to < end; from += extent * row)
    for (int64_t i : kept) {
      std::memcpy(to, from + i * row, static_cast<size_t>(row));
      to += row;
    }
  return {};
}

}  // namespace lathe
