// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"

namespace lathe {

Result<> infer_depth_to_space(InferContext& context) {
  const int64_t block = context.attrs<DepthToSpaceAttrs>().block;
  if (block < 1 || block > INT16_MAX)
    return fail(ErrorCode::attribute_invalid, "depth_to_space: block is {}, expected 1 or more", block);
  LATHE_TRY(require_rank(context, 0, 4, 4));
  const Shape& in = context.shape(0);
  const Expr channels = floordiv(in[1], block * block);
  if (!context.assume_equal(mod(in[1], block * block), 0))
    return fail(ErrorCode::shape_mismatch, "depth_to_space: {} channels do not divide by block * block = {}",
                in[1].to_string(), block * block);
  context.set(0, context.dtype(0), {in[0], channels, in[2] * block, in[3] * block});
  return {};
}

Result<> eval_depth_to_space(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  const auto& attrs = context.attrs<DepthToSpaceAttrs>();
  const int64_t b = attrs.block, n = input.dims()[0], c = output.dims()[1], h = input.dims()[2], w = input.dims()[3];
  // Strides of the input seen as [n, b, b, c, h, w] (dcr) or [n, c, b, b, h, w] (crd).
  const bool dcr = attrs.mode == DepthToSpaceMode::dcr;
  const int64_t plane = h * w, channel = dcr ? plane : b * b * plane, row = dcr ? b * c * plane : b * plane,
                column = dcr ? c * plane : plane;
  const Dims dims = {n, c, h, b, w, b}, source = {b * b * c * plane, channel, w, row, 1, column};
  copy_box(size_of(input.dtype()), dims, input.data(), source, output.mutable_data(), row_major_strides(dims));
  return {};
}

}  // namespace lathe
