// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/indices.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_gather_nd(InferContext& context) {
  const Shape &data = context.shape(0), &indices = context.shape(1);
  const int64_t batch = context.attrs<GatherNdAttrs>().batch_dims;
  LATHE_TRY(require_integer(context, 1));
  LATHE_TRY(require_rank(context, 0, 1, kMany));
  LATHE_TRY(require_rank(context, 1, 1, kMany));
  const std::optional<int64_t> depth = indices.back().as_constant();
  if (!depth)
    return fail(ErrorCode::shape_unknown,
                "gather_nd: the last dimension of the indices {} must be known while building", to_string(indices));
  if (batch < 0 || batch >= context.rank(1) || *depth < 0 || *depth + batch > context.rank(0))
    return fail(ErrorCode::shape_mismatch,
                "gather_nd: tuples of {} indices after {} batch axes do not fit data {} and indices {}", *depth, batch,
                to_string(data), to_string(indices));
  for (int64_t d = 0; d < batch; ++d)
    if (!context.assume_equal(data[static_cast<size_t>(d)], indices[static_cast<size_t>(d)]))
      return fail(ErrorCode::shape_mismatch, "gather_nd: data {} and indices {} differ in batch axis {}",
                  to_string(data), to_string(indices), d);
  Shape output(indices.begin(), indices.end() - 1);
  output.insert(output.end(), data.begin() + batch + *depth, data.end());
  context.set(0, context.dtype(0), std::move(output));
  move_elements(context);
  return {};
}

Result<> eval_gather_nd(EvalContext& context) {
  const Tensor& data = context.input(0);
  LATHE_ASSIGN(const TupleOffsets tuples,
               offsets_of_tuples(data, context.input(1), context.attrs<GatherNdAttrs>().batch_dims, "gather_nd"));
  const size_t size = size_of(data.dtype()), row = static_cast<size_t>(tuples.run) * size;
  const char* from = static_cast<const char*>(data.data());
  char* to = static_cast<char*>(context.output(0).mutable_data());
  for (int64_t offset : tuples.offsets) {
    std::memcpy(to, from + static_cast<size_t>(offset) * size, row);
    to += row;
  }
  return {};
}

}  // namespace lathe
