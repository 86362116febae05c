// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/indices.h"
#include "ops/rules.h"

namespace lathe {

Result<> infer_scatter_nd(InferContext& context) {
  const Shape &data = context.shape(0), &indices = context.shape(1), &updates = context.shape(2);
  LATHE_TRY(require_integer(context, 1));
  LATHE_TRY(require_same_dtype(context, 0, 2));
  LATHE_TRY(require_rank(context, 0, 1, kMany));
  LATHE_TRY(require_rank(context, 1, 1, kMany));
  context.set(0, context.dtype(0), data);
  const std::optional<int64_t> depth = indices.back().as_constant();
  if (!depth) return {};  // checked while running
  if (*depth > context.rank(0))
    return fail(ErrorCode::shape_mismatch, "scatter_nd: tuples of {} indices into data {}", *depth, to_string(data));
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + *depth, data.end());
  bool fits = expected.size() == updates.size();
  for (size_t d = 0; fits && d < expected.size(); ++d) fits = context.assume_equal(expected[d], updates[d]);
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "scatter_nd: updates {} should have shape {} for data {} and indices {}",
                to_string(updates), to_string(expected), to_string(data), to_string(indices));
  return {};
}

Result<> eval_scatter_nd(EvalContext& context) {
  const Tensor& data = context.input(0);
  Tensor& output = context.output(0);
  LATHE_ASSIGN(const TupleOffsets tuples, offsets_of_tuples(data, context.input(1), 0, "scatter_nd"));
  std::memcpy(output.mutable_data(), data.data(), data.bytes());
  scatter(context.attrs<ScatterNdAttrs>().reduction, context.input(2), tuples.offsets, tuples.run, output);
  return {};
}

}  // namespace lathe
