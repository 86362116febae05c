// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace lathe {

Result<> infer_lrn(InferContext& context) {
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(require_rank(context, 0, 2, kMany));
  const int64_t size = context.attrs<LrnAttrs>().size;
  if (size < 1) return fail(ErrorCode::attribute_invalid, "size is {}, but it must be 1 or more", size);
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

// y = x / (bias + alpha / size * sum of x^2 over `size` channels around)^beta; an even size reaches further up.
Result<> eval_lrn(EvalContext& context) {
  const LrnAttrs& attrs = context.attrs<LrnAttrs>();
  const Tensor& x = context.input(0);
  const int64_t channels = x.dims()[1];
  if (x.volume() == 0) return {};
  const int64_t area = x.volume() / (x.dims()[0] * channels);
  const int64_t below = std::min((attrs.size - 1) / 2, channels), above = std::min(attrs.size / 2, channels);
  const std::vector<double> source = to_doubles(x);
  std::vector<double> out(source.size());
  for (int64_t n = 0; n < x.dims()[0]; ++n)
    for (int64_t c = 0; c < channels; ++c) {
      double* sums = out.data() + (n * channels + c) * area;
      for (int64_t k = std::max<int64_t>(0, c - below); k <= std::min(channels - 1, c + above); ++k) {
        const double* values = source.data() + (n * channels + k) * area;
        for (int64_t i = 0; i < area; ++i) sums[i] += values[i] * values[i];
      }
      const double* values = source.data() + (n * channels + c) * area;
      const double scale = attrs.alpha / static_cast<double>(attrs.size);
      for (int64_t i = 0; i < area; ++i) sums[i] = values[i] / std::pow(attrs.bias + scale * sums[i], attrs.beta);
    }
  from_doubles(out, context.output(0));
  return {};
}

}  // namespace lathe
