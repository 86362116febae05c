// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/moments.h"
#include "ops/row_affine.h"

namespace lathe {

Result<> infer_layer_normalization(InferContext& context) {
  LATHE_TRY(require_floating(context, 0));
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<LayerNormalizationAttrs>().axis, context.rank(0)));
  LATHE_TRY(check_row_operand(context, 1));
  if (context.has(2)) LATHE_TRY(check_row_operand(context, 2));
  Shape rows = context.shape(0);
  context.set(0, context.dtype(0), rows);
  std::fill(rows.begin() + axis, rows.end(), Expr(1));
  for (size_t i = 1; i < context.num_outputs(); ++i) context.set(i, DType::f32, rows);
  return {};
}

Result<> eval_layer_normalization(EvalContext& context) {
  const LayerNormalizationAttrs& attrs = context.attrs<LayerNormalizationAttrs>();
  std::vector<double> x = to_doubles(context.input(0));
  const auto size = static_cast<size_t>(row_size(context.input(0).dims(), attrs.axis));
  std::vector<double> means, inverses;
  for (size_t begin = 0; begin < x.size(); begin += size) {
    const std::span<double> row(x.data() + begin, size);
    const Moments moments = moments_of(row);
    means.push_back(moments.mean);
    inverses.push_back(1 / std::sqrt(moments.variance + attrs.epsilon));
    for (double& value : row) value = (value - moments.mean) * inverses.back();
  }
  apply_affine(context, x);
  from_doubles(x, context.output(0));
  // Rows of no elements have a mean all the same.
  const size_t rows = context.num_outputs() > 1 ? static_cast<size_t>(context.output(1).volume()) : 0;
  means.resize(std::max(rows, means.size()), NAN);
  inverses.resize(std::max(rows, inverses.size()), NAN);
  if (context.num_outputs() > 1) from_doubles(means, context.output(1));
  if (context.num_outputs() > 2) from_doubles(inverses, context.output(2));
  return {};
}

}  // namespace lathe
