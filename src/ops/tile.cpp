// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_tile(InferContext& context) {
  LATHE_ASSIGN(const int64_t length, list_length(context, 1, "tile: repeats"));
  Shape output = context.shape(0);
  if (length != context.rank(0))
    return fail(ErrorCode::shape_mismatch, "tile: {} repeats for an input of shape {}", length, to_string(output));
  for (size_t i = 0; i < output.size(); ++i) {
    const std::optional<Expr> repeats = context.element(1, i);
    if (repeats && repeats->is_constant() && *repeats->as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "tile: repeat {} is {}, expected 0 or more", i, *repeats->as_constant());
    output[i] = repeats ? output[i] * *repeats : context.new_symbol("tile_dim", i);
  }
  context.set(0, context.dtype(0), std::move(output));
  move_elements(context);
  return {};
}

// Each axis becomes a pair (repeat, extent) of which the source walks only the extent.
Result<> eval_tile(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  const Ints repeats = to_ints(context.input(1));
  const Dims strides = row_major_strides(input.dims());
  Dims dims, source;
  for (size_t d = 0; d < repeats.size(); ++d) {
    dims.insert(dims.end(), {repeats[d], input.dims()[d]});
    source.insert(source.end(), {0, strides[d]});
  }
  copy_box(size_of(input.dtype()), dims, input.data(), source, output.mutable_data(), row_major_strides(dims));
  return {};
}

}  // namespace lathe
