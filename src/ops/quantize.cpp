// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/quantization.h"

namespace lathe {

Result<> infer_quantize(InferContext& context) {
  const auto& attrs = context.attrs<QuantizeAttrs>();
  LATHE_TRY(require_floating(context, 0));
  if (!is_storage_only(context.dtype(1))) LATHE_TRY(require_same_dtype(context, 0, 1));
  if (!quantized_range(attrs.to) && !is_quantized_float(attrs.to))
    return fail(ErrorCode::dtype_unsupported, "quantisation to {} is not supported", name_of(attrs.to));
  LATHE_TRY(check_quantization(context, attrs.to, attrs.blocks));
  context.set(0, attrs.to, context.shape(0));
  return {};
}

Result<> eval_quantize(EvalContext& context) {
  const auto& attrs = context.attrs<QuantizeAttrs>();
  const std::optional<IntegerRange> range = quantized_range(attrs.to);
  return dispatch(context.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    return map_quantized(context, attrs.blocks, attrs.saturate, [range](double x, double scale, double zero_point) {
      double quotient = x / scale;
      if constexpr (std::is_class_v<T>)
        quotient = static_cast<float>(round_to<T>(quotient));
      else
        quotient = static_cast<double>(round_to<T>(quotient));
      if (!range) return quotient + zero_point;
      const double level = std::nearbyint(quotient) + zero_point;
      return level < range->low ? range->low : level > range->high ? range->high : level;  // NaN stays, and becomes 0
    });
  });
}

}  // namespace lathe
