// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/op.h"

namespace lathe {
namespace {

// Dims [first, last) of a tensor of `rank`: negative bounds count from the end, all are clamped.
std::pair<int64_t, int64_t> bounds(const ShapeAttrs& attrs, int64_t rank) {
  const auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t first = clamped(attrs.start);
  return {first, std::max(first, clamped(attrs.end))};
}

}  // namespace

Result<> infer_shape(InferContext& context) {
  const Shape& input = context.shape(0);
  const auto [first, last] = bounds(context.attrs<ShapeAttrs>(), context.rank(0));
  context.set(0, DType::i64, {last - first});
  context.set_elements(0, Shape(input.begin() + first, input.begin() + last));
  return {};
}

Result<> eval_shape(EvalContext& context) {
  const Dims& dims = context.input(0).dims();
  const auto [first, last] = bounds(context.attrs<ShapeAttrs>(), context.input(0).rank());
  std::copy(dims.begin() + first, dims.begin() + last, context.output(0).mutable_as<int64_t>());
  return {};
}

}  // namespace lathe
