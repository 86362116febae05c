// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_concat(InferContext& context) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<ConcatAttrs>().axis, context.rank(0), "concat: axis"));
  Shape output = context.shape(0);
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.has(i)) return fail(ErrorCode::graph_invalid, "concat: input {} is missing", i);
    LATHE_TRY(require_same_dtype(context, 0, i));
    const Shape& next = context.shape(i);
    bool fits = next.size() == output.size();
    for (size_t d = 0; fits && d < output.size(); ++d) {
      if (d == static_cast<size_t>(axis)) {
        output[d] += next[d];
      } else {
        fits = context.assume_equal(output[d], next[d]);
        if (next[d].is_constant()) output[d] = next[d];
      }
    }
    if (!fits)
      return fail(ErrorCode::shape_mismatch,
                  "concat: inputs 0 and {} have shapes {} and {}, which must agree but on axis {}", i,
                  to_string(context.shape(0)), to_string(next), axis);
  }
  context.set(0, context.dtype(0), std::move(output));
  move_elements(context, context.num_inputs());
  return {};
}

Result<> eval_concat(EvalContext& context) {
  Tensor& output = context.output(0);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<ConcatAttrs>().axis, output.rank()));
  const size_t size = size_of(output.dtype());
  const Dims strides = row_major_strides(output.dims());
  char* target = static_cast<char*>(output.mutable_data());
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const Tensor& input = context.input(i);
    copy_box(size, input.dims(), input.data(), row_major_strides(input.dims()), target, strides);
    target += input.dims()[static_cast<size_t>(axis)] * strides[static_cast<size_t>(axis)] * static_cast<int64_t>(size);
  }
  return {};
}

}  // namespace lathe
