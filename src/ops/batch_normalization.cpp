// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rules.h"

namespace lathe {
namespace {

constexpr const char* kNames[] = {"x", "scale", "bias", "mean", "variance"};

// x[N, C, ...]; a vector has one channel.
AxisSplit channels_of(std::span<const int64_t> dims) {
  return dims.size() < 2 ? AxisSplit{dims.empty() ? 1 : dims[0], 1, 1} : split_at(dims, 1);
}

struct Statistics {
  std::vector<double> mean, variance;  // per channel
};

Statistics batch_statistics(const std::vector<double>& x, const AxisSplit& split) {
  const auto channels = static_cast<size_t>(split.extent);
  const double count = static_cast<double>(split.outer * split.inner);
  Statistics statistics{std::vector<double>(channels), std::vector<double>(channels)};
  const auto add = [&](std::vector<double>& totals, auto term) {
    for (int64_t n = 0; n < split.outer; ++n)
      for (int64_t c = 0; c < split.extent; ++c)
        for (int64_t i = 0; i < split.inner; ++i) totals[c] += term(c, x[(n * split.extent + c) * split.inner + i]);
    for (double& total : totals) total /= count;
  };
  add(statistics.mean, [](int64_t, double value) { return value; });
  add(statistics.variance,
      [&](int64_t c, double value) { return (value - statistics.mean[c]) * (value - statistics.mean[c]); });
  return statistics;
}

// Output `index` = old * momentum + new * (1 - momentum).
void write_running(EvalContext& context, size_t index, const Tensor& old, const std::vector<double>& current) {
  if (index >= context.num_outputs()) return;
  const double momentum = context.attrs<BatchNormalizationAttrs>().momentum;
  std::vector<double> values = to_doubles(old);
  for (size_t c = 0; c < values.size(); ++c) values[c] = values[c] * momentum + current[c] * (1 - momentum);
  from_doubles(values, context.output(index));
}

}  // namespace

Result<> infer_batch_normalization(InferContext& context) {
  const BatchNormalizationAttrs& attrs = context.attrs<BatchNormalizationAttrs>();
  LATHE_TRY(require_rank(context, 0, 1, kMany));
  const Expr channels = context.rank(0) < 2 ? Expr(1) : context.shape(0)[1];
  for (size_t i = 0; i < 5; ++i) {
    LATHE_TRY(require_floating(context, i));
    if (i > 0 && (context.rank(i) != 1 || !context.assume_equal(context.shape(i)[0], channels)))
      return fail(ErrorCode::shape_mismatch, "{} (input {}) has shape {}, but one value per channel is needed: [{}]",
                  kNames[i], i, to_string(context.shape(i)), channels.to_string());
  }
  if (context.num_outputs() > 1 && !attrs.training)
    return fail(ErrorCode::graph_invalid, "running mean and variance are outputs in training mode only");
  context.set(0, context.dtype(0), context.shape(0));
  for (size_t i = 1; i < context.num_outputs(); ++i) context.set(i, context.dtype(i + 2), {channels});
  return {};
}

Result<> eval_batch_normalization(EvalContext& context) {
  const BatchNormalizationAttrs& attrs = context.attrs<BatchNormalizationAttrs>();
  const AxisSplit split = channels_of(context.input(0).dims());
  std::vector<double> x = to_doubles(context.input(0));
  const std::vector<double> scale = to_doubles(context.input(1)), bias = to_doubles(context.input(2));
  Statistics statistics{to_doubles(context.input(3)), to_doubles(context.input(4))};
  if (attrs.training) {
    statistics = batch_statistics(x, split);
    write_running(context, 1, context.input(3), statistics.mean);
    write_running(context, 2, context.input(4), statistics.variance);
  }
  for (int64_t n = 0; n < split.outer; ++n)
    for (int64_t c = 0; c < split.extent; ++c) {
      const double factor = scale[c] / std::sqrt(statistics.variance[c] + attrs.epsilon);
      double* values = x.data() + (n * split.extent + c) * split.inner;
      for (int64_t i = 0; i < split.inner; ++i) values[i] = (values[i] - statistics.mean[c]) * factor + bias[c];
    }
  from_doubles(x, context.output(0));
  return {};
}

}  // namespace lathe
