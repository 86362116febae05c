// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {
namespace {

// How many neighbours along each dimension of operand `i` share a scale, which is input i + 2.
Ints blocks_of(const ScaledMatmulAttrs& attrs, size_t i, size_t rank) {
  Ints blocks(rank, 1);
  blocks[rank - 1] = attrs.block;
  if (i == 1) blocks[0] = attrs.columns;
  return blocks;
}

bool fits(InferContext& context, size_t i) {
  if (!context.has(i + 2)) return true;
  const Shape &x = context.shape(i), &scale = context.shape(i + 2);
  const Ints blocks = blocks_of(context.attrs<ScaledMatmulAttrs>(), i, x.size());
  if (context.dtype(i + 2) != DType::f32 || scale.size() != x.size()) return false;
  for (size_t d = 0; d < x.size(); ++d)
    if (blocks[d] < 1 || !context.assume_equal(scale[d], ceildiv(x[d], blocks[d]))) return false;
  return true;
}

std::vector<double> scales_of(EvalContext& context, size_t i) {
  return context.has(i + 2) ? to_doubles(context.input(i + 2)) : std::vector<double>();
}

}  // namespace

Result<> infer_scaled_matmul(InferContext& context) {
  LATHE_TRY(require_same_dtype(context, 0, 1));
  LATHE_TRY(require_rank(context, 0, 2, kMany));
  LATHE_TRY(require_rank(context, 1, 2, 2));
  Shape shape = context.shape(0);
  const Shape& w = context.shape(1);
  const auto& attrs = context.attrs<ScaledMatmulAttrs>();
  if (attrs.block < 1 || attrs.columns < 1 || !is_factor_float8(context.dtype(0)) ||
      !context.assume_equal(shape.back(), w[1]) || !fits(context, 0) || !fits(context, 1))
    return fail(ErrorCode::shape_mismatch,
                "scaled_matmul of {} by {} multiplies 8-bit floats, and has scales of f32 for their blocks",
                to_string(shape), to_string(w));
  shape.back() = w[0];
  context.set(0, DType::f32, std::move(shape));
  return {};
}

Result<> eval_scaled_matmul(EvalContext& context) {
  const auto& attrs = context.attrs<ScaledMatmulAttrs>();
  const std::vector<double> x = to_doubles(context.input(0)), w = to_doubles(context.input(1));
  const std::vector<double> x_scales = scales_of(context, 0), w_scales = scales_of(context, 1);
  const int64_t n = context.input(1).dims()[0], k = context.input(1).dims()[1];
  const int64_t blocks = (k + attrs.block - 1) / attrs.block;
  std::vector<double> sums(static_cast<size_t>(context.output(0).volume()));
  for (size_t i = 0; i < sums.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / n, column = static_cast<int64_t>(i) % n;
    for (int64_t l = 0; l < k; ++l) {
      double product = x[row * k + l] * w[column * k + l];
      if (!x_scales.empty()) product *= x_scales[row * blocks + l / attrs.block];
      if (!w_scales.empty()) product *= w_scales[column / attrs.columns * blocks + l / attrs.block];
      sums[i] += product;
    }
  }
  from_doubles(sums, context.output(0));
  return {};
}

}  // namespace lathe
