// SPDX-License-Identifier: Apache-2.0
#include "ops/group_rows.h"

#include <cmath>

#include "ops/moments.h"

namespace lathe {

Result<> check_channel_affine(InferContext& context) {
  LATHE_TRY(require_rank(context, 0, 2, kMany));
  const Expr& channels = context.shape(0)[1];
  for (size_t i = 0; i < 3; ++i) {
    LATHE_TRY(require_floating(context, i));
    if (i > 0 && (context.rank(i) != 1 || !context.assume_equal(context.shape(i)[0], channels)))
      return fail(ErrorCode::shape_mismatch, "{} (input {}) has shape {}, but one value per channel is needed: [{}]",
                  i == 1 ? "scale" : "bias", i, to_string(context.shape(i)), channels.to_string());
  }
  return {};
}

void normalize_groups(EvalContext& context, int64_t groups, double epsilon) {
  const AxisSplit split = split_at(context.input(0).dims(), 1);
  std::vector<double> x = to_doubles(context.input(0));
  if (x.empty()) return;
  const std::vector<double> scale = to_doubles(context.input(1)), bias = to_doubles(context.input(2));
  const int64_t per_group = split.extent / groups, row = per_group * split.inner;
  for (int64_t g = 0; g < split.outer * groups; ++g) {
    double* values = x.data() + g * row;
    const Moments moments = moments_of({values, static_cast<size_t>(row)});
    const double factor = 1 / std::sqrt(moments.variance + epsilon);
    for (int64_t i = 0; i < row; ++i) {
      const int64_t channel = g % groups * per_group + i / split.inner;
      values[i] = (values[i] - moments.mean) * factor * scale[channel] + bias[channel];
    }
  }
  from_doubles(x, context.output(0));
}

}  // namespace lathe
