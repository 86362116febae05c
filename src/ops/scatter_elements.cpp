// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/indices.h"
#include "ops/rules.h"

namespace lathe {

Result<> infer_scatter_elements(InferContext& context) {
  LATHE_TRY(require_integer(context, 1));
  LATHE_TRY(require_same_dtype(context, 0, 2));
  LATHE_ASSIGN(const int64_t axis,
               normalize_axis(context.attrs<ScatterElementsAttrs>().axis, context.rank(0), "scatter_elements: axis"));
  bool fits = context.rank(1) == context.rank(0) && context.rank(2) == context.rank(1);
  for (size_t d = 0; fits && d < context.shape(1).size(); ++d)
    fits = context.assume_equal(context.shape(1)[d], context.shape(2)[d]);
  if (!fits)
    return fail(ErrorCode::shape_mismatch,
                "scatter_elements: indices {} and updates {} must have one shape, of the rank of data {}",
                to_string(context.shape(1)), to_string(context.shape(2)), to_string(context.shape(0)));
  LATHE_TRY(check_reach(context, axis, "scatter_elements"));
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

Result<> eval_scatter_elements(EvalContext& context) {
  const Tensor& data = context.input(0);
  Tensor& output = context.output(0);
  const auto& attrs = context.attrs<ScatterElementsAttrs>();
  LATHE_ASSIGN(const int64_t axis, normalize_axis(attrs.axis, data.rank()));
  LATHE_ASSIGN(const Ints offsets, offsets_along_axis(data, context.input(1), axis, "scatter_elements"));
  std::memcpy(output.mutable_data(), data.data(), data.bytes());
  scatter(attrs.reduction, context.input(2), offsets, 1, output);
  return {};
}

}  // namespace lathe
