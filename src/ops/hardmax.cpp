// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rules.h"

namespace lathe {

Result<> infer_hardmax(InferContext& context) {
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(normalize_axis(context.attrs<HardmaxAttrs>().axis, context.rank(0)));
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

// 1 at the first of the largest elements of each row (NaN is larger than all), 0 elsewhere.
Result<> eval_hardmax(EvalContext& context) {
  const std::vector<double> x = to_doubles(context.input(0));
  const AxisSplit split = split_at(context.input(0).dims(), context.attrs<HardmaxAttrs>().axis);
  std::vector<double> y(x.size(), 0);
  if (x.empty()) return {};
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t r = 0; r < split.inner; ++r) {
      const int64_t base = o * split.extent * split.inner + r;
      int64_t best = base;
      for (int64_t i = 1; i < split.extent; ++i) {
        const int64_t at = base + i * split.inner;
        if (!std::isnan(x[best]) && (std::isnan(x[at]) || x[at] > x[best])) best = at;
      }
      y[best] = 1;
    }
  from_doubles(y, context.output(0));
  return {};
}

}  // namespace lathe
