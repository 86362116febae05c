// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/quantization.h"

namespace lathe {

Result<> infer_quantize(InferContext& context) {
  const DType to = context.attrs<QuantizeAttrs>().to;
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(require_same_dtype(context, 0, 1));
  if (!quantized_range(to))
    return fail(ErrorCode::dtype_unsupported, "quantisation to {} is not supported", name_of(to));
  LATHE_TRY(check_quantization(context, to));
  context.set(0, to, context.shape(0));
  return {};
}

Result<> eval_quantize(EvalContext& context) {
  const IntegerRange range = *quantized_range(context.attrs<QuantizeAttrs>().to);
  dispatch(context.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_quantized(context, [range](double x, double scale, double zero_point) {
      double quotient = x / scale;
      if constexpr (std::is_class_v<T>)
        quotient = static_cast<float>(round_to<T>(quotient));
      else
        quotient = static_cast<double>(round_to<T>(quotient));
      const double level = std::nearbyint(quotient) + zero_point;
      return level < range.low ? range.low : level > range.high ? range.high : level;  // keeps NaN, which becomes 0
    });
  });
  return {};
}

}  // namespace lathe
