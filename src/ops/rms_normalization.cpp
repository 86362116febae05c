// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/row_affine.h"

namespace lathe {

Result<> infer_rms_normalization(InferContext& context) {
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(normalize_axis(context.attrs<RmsNormalizationAttrs>().axis, context.rank(0)));
  LATHE_TRY(check_row_operand(context, 1));
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

Result<> eval_rms_normalization(EvalContext& context) {
  const RmsNormalizationAttrs& attrs = context.attrs<RmsNormalizationAttrs>();
  std::vector<double> x = to_doubles(context.input(0));
  const auto size = static_cast<size_t>(row_size(context.input(0).dims(), attrs.axis));
  for (size_t begin = 0; begin < x.size(); begin += size) {
    const std::span<double> row(x.data() + begin, size);
    double sum = 0;
    for (double value : row) sum += value * value;
    const double inverse = 1 / std::sqrt(sum / static_cast<double>(size) + attrs.epsilon);
    for (double& value : row) value *= inverse;
  }
  apply_affine(context, x);
  from_doubles(x, context.output(0));
  return {};
}

}  // namespace lathe
