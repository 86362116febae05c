// SPDX-License-Identifier: Apache-2.0
#include "ops/quantization.h"

namespace lathe {

Result<> infer_dequantize(InferContext& context) {
  const auto& attrs = context.attrs<DequantizeAttrs>();
  const DType from = context.dtype(0);
  // Sums of products of 8-bit floats, whose results have 16 bits: other networks multiply and cast.
  const bool are_sums = from == DType::f32 && size_of(attrs.to) == 2 && attrs.blocks.empty() && !context.has(2);
  if (!are_sums && !is_quantized_float(from) && !quantized_range(from)) LATHE_TRY(require_integer(context, 0));
  if (size_of(from) > 4)
    return fail(ErrorCode::dtype_unsupported, "dequantisation of {} is not supported", name_of(from));
  if (!is_floating(attrs.to))
    return fail(ErrorCode::attribute_invalid, "dequantisation gives a floating type, not {}", name_of(attrs.to));
  LATHE_TRY(check_quantization(context, from, attrs.blocks));
  context.set(0, attrs.to, context.shape(0));
  return {};
}

Result<> eval_dequantize(EvalContext& context) {
  return map_quantized(context, context.attrs<DequantizeAttrs>().blocks, true,
                       [](double x, double scale, double zero_point) { return (x - zero_point) * scale; });
}

}  // namespace lathe
