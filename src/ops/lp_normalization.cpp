// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rules.h"

namespace lathe {

Result<> infer_lp_normalization(InferContext& context) {
  const LpNormalizationAttrs& attrs = context.attrs<LpNormalizationAttrs>();
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(normalize_axis(attrs.axis, context.rank(0)));
  if (attrs.p < 1) return fail(ErrorCode::attribute_invalid, "p is {}, but it must be 1 or more", attrs.p);
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

// Each row divided by its p-norm; a row of zeros stays.
Result<> eval_lp_normalization(EvalContext& context) {
  const LpNormalizationAttrs& attrs = context.attrs<LpNormalizationAttrs>();
  std::vector<double> values = to_doubles(context.input(0));
  const AxisSplit split = split_at(context.input(0).dims(), attrs.axis);
  const auto p = static_cast<double>(attrs.p);
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t r = 0; r < split.inner; ++r) {
      double* row = values.data() + o * split.extent * split.inner + r;
      double sum = 0;
      for (int64_t i = 0; i < split.extent; ++i) sum += std::pow(std::fabs(row[i * split.inner]), p);
      const double norm = std::pow(sum, 1 / p);
      for (int64_t i = 0; norm != 0 && i < split.extent; ++i) row[i * split.inner] /= norm;
    }
  from_doubles(values, context.output(0));
  return {};
}

}  // namespace lathe
