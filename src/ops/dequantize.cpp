// SPDX-License-Identifier: Apache-2.0
#include "ops/quantization.h"

namespace lathe {

Result<> infer_dequantize(InferContext& context) {
  const DType to = context.attrs<DequantizeAttrs>().to;
  LATHE_TRY(require_integer(context, 0));
  if (size_of(context.dtype(0)) > 4)
    return fail(ErrorCode::dtype_unsupported, "dequantisation of {} is not supported", name_of(context.dtype(0)));
  if (!is_floating(to))
    return fail(ErrorCode::attribute_invalid, "dequantisation gives a floating type, not {}", name_of(to));
  LATHE_TRY(check_quantization(context, context.dtype(0)));
  context.set(0, to, context.shape(0));
  return {};
}

Result<> eval_dequantize(EvalContext& context) {
  map_quantized(context, [](double x, double scale, double zero_point) { return (x - zero_point) * scale; });
  return {};
}

}  // namespace lathe
