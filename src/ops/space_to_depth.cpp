// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"

namespace lathe {

Result<> infer_space_to_depth(InferContext& context) {
  const int64_t block = context.attrs<SpaceToDepthAttrs>().block;
  if (block < 1 || block > INT16_MAX)
    return fail(ErrorCode::attribute_invalid, "space_to_depth: block is {}, expected 1 or more", block);
  LATHE_TRY(require_rank(context, 0, 4, 4));
  const Shape& in = context.shape(0);
  for (size_t d = 2; d < 4; ++d)
    if (!context.assume_equal(mod(in[d], block), 0))
      return fail(ErrorCode::shape_mismatch, "space_to_depth: dimension {} of input {} does not divide by the block {}",
                  d, to_string(in), block);
  context.set(0, context.dtype(0), {in[0], in[1] * (block * block), floordiv(in[2], block), floordiv(in[3], block)});
  return {};
}

Result<> eval_space_to_depth(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  const int64_t b = context.attrs<SpaceToDepthAttrs>().block, c = input.dims()[1];
  const int64_t h = output.dims()[2], w = output.dims()[3], plane = h * b * w * b;
  // Output [n, b, b, c, h, w] reads input [n, c, h, b, w, b].
  const Dims dims = {input.dims()[0], b, b, c, h, w}, source = {c * plane, w * b, 1, plane, b * w * b, b};
  copy_box(size_of(input.dtype()), dims, input.data(), source, output.mutable_data(), row_major_strides(dims));
  return {};
}

}  // namespace lathe
