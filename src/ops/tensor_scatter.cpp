// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/rules.h"

namespace lathe {

Result<> infer_tensor_scatter(InferContext& context) {
  LATHE_TRY(require_same_dtype(context, 0, 1));
  const Shape x = context.shape(0), update = context.shape(1);
  LATHE_ASSIGN(const int64_t axis,
               normalize_axis(context.attrs<TensorScatterAttrs>().axis, context.rank(0), "tensor_scatter: axis"));
  if (axis == 0) return fail(ErrorCode::attribute_invalid, "tensor_scatter: the axis cannot be the batch");
  bool fits = update.size() == x.size();
  for (size_t d = 0; fits && d < x.size(); ++d)
    fits = d == static_cast<size_t>(axis) || context.assume_equal(update[d], x[d]);
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "tensor_scatter: update {} and input {} must agree but for dimension {}",
                to_string(update), to_string(x), axis);
  if (context.has(2)) {
    LATHE_TRY(require_integer(context, 2));
    if (context.rank(2) != 1 || !context.assume_equal(context.shape(2)[0], x[0]))
      return fail(ErrorCode::shape_mismatch, "tensor_scatter: indices {} must be one for each batch entry of {}",
                  to_string(context.shape(2)), to_string(x));
  }
  context.set(0, context.dtype(0), x);
  return {};
}

Result<> eval_tensor_scatter(EvalContext& context) {
  const Tensor &x = context.input(0), &update = context.input(1);
  Tensor& output = context.output(0);
  const auto& attrs = context.attrs<TensorScatterAttrs>();
  LATHE_ASSIGN(const int64_t axis, normalize_axis(attrs.axis, x.rank()));
  std::memcpy(output.mutable_data(), x.data(), x.bytes());
  if (update.volume() == 0) return {};
  const AxisSplit to = split_at(x.dims(), axis), from = split_at(update.dims(), axis);
  if (attrs.circular && to.extent == 0) return {};
  const int64_t of_entry = to.outer / x.dims()[0], element = static_cast<int64_t>(size_of(x.dtype()));
  const auto* source = static_cast<const char*>(update.data());
  auto* target = static_cast<char*>(output.mutable_data());
  for (int64_t o = 0; o < to.outer; ++o) {
    const int64_t first = context.has(2) ? context.input(2).at(o / of_entry) : 0;
    if (!attrs.circular && (first < 0 || first > to.extent - from.extent))
      return fail(ErrorCode::execution_failed, "tensor_scatter: {} indices from {} on are outside [0, {}) of axis {}",
                  from.extent, first, to.extent, axis);
    for (int64_t i = 0; i < from.extent; ++i) {
      const int64_t row = attrs.circular ? ((first % to.extent + i) % to.extent + to.extent) % to.extent : first + i;
      std::memcpy(target + (o * to.extent + row) * to.inner * element, source, static_cast<size_t>(to.inner * element));
      source += to.inner * element;
    }
  }
  return {};
}

}  // namespace lathe
