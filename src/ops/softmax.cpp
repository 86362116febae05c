// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rules.h"

namespace lathe {
namespace {

// One row in place, elements `step` apart. Taking off the largest first keeps exp from overflowing.
void softmax_row(double* row, int64_t count, int64_t step, bool log) {
  double largest = -HUGE_VAL;
  for (int64_t i = 0; i < count; ++i)
    if (!(row[i * step] <= largest)) largest = row[i * step];
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    row[i * step] -= largest;
    sum += std::exp(row[i * step]);
  }
  for (int64_t i = 0; i < count; ++i)
    row[i * step] = log ? row[i * step] - std::log(sum) : std::exp(row[i * step]) / sum;
}

}  // namespace

Result<> infer_softmax(InferContext& context) {
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(normalize_axis(context.attrs<SoftmaxAttrs>().axis, context.rank(0)));
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

Result<> eval_softmax(EvalContext& context) {
  const SoftmaxAttrs& attrs = context.attrs<SoftmaxAttrs>();
  std::vector<double> values = to_doubles(context.input(0));
  const AxisSplit split = split_at(context.input(0).dims(), attrs.axis);
  if (split.extent == 0) return {};
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t r = 0; r < split.inner; ++r)
      softmax_row(values.data() + o * split.extent * split.inner + r, split.extent, split.inner, attrs.log);
  from_doubles(values, context.output(0));
  return {};
}

}  // namespace lathe
