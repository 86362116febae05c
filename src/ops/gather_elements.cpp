// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/indices.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_gather_elements(InferContext& context) {
  LATHE_TRY(require_integer(context, 1));
  LATHE_ASSIGN(const int64_t axis,
               normalize_axis(context.attrs<GatherElementsAttrs>().axis, context.rank(0), "gather_elements: axis"));
  if (context.rank(0) != context.rank(1))
    return fail(ErrorCode::shape_mismatch, "gather_elements: data {} and indices {} must have the same rank",
                to_string(context.shape(0)), to_string(context.shape(1)));
  LATHE_TRY(check_reach(context, axis, "gather_elements"));
  context.set(0, context.dtype(0), context.shape(1));
  move_elements(context);
  return {};
}

Result<> eval_gather_elements(EvalContext& context) {
  const Tensor& data = context.input(0);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<GatherElementsAttrs>().axis, data.rank()));
  LATHE_ASSIGN(const Ints offsets, offsets_along_axis(data, context.input(1), axis, "gather_elements"));
  for_size(size_of(data.dtype()), [&](auto zero) {
    using T = decltype(zero);
    const T* from = data.as<T>();
    T* to = context.output(0).mutable_as<T>();
    for (int64_t offset : offsets) *to++ = from[offset];
  });
  return {};
}

}  // namespace lathe
