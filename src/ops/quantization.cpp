// SPDX-License-Identifier: Apache-2.0
#include "ops/quantization.h"

namespace lathe {

std::optional<IntegerRange> quantized_range(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return IntegerRange{-128, 127};
    case DType::u8:
      return IntegerRange{0, 255};
    case DType::i16:
      return IntegerRange{-32768, 32767};
    case DType::u16:
      return IntegerRange{0, 65535};
    default:
      return std::nullopt;
  }
}

Result<> check_quantization(InferContext& context, DType integers) {
  LATHE_TRY(require_floating(context, 1));
  if (context.has(2) && context.dtype(2) != integers)
    return fail(ErrorCode::type_mismatch, "the zero point has type {}, but the integers have type {}",
                name_of(context.dtype(2)), name_of(integers));
  const Shape& x = context.shape(0);
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.has(i)) continue;
    const Shape& operand = context.shape(i);
    if (!assume_expands(context, operand, x))
      return fail(ErrorCode::shape_mismatch, "the {} of shape {} does not broadcast to x of shape {}",
                  i == 1 ? "scale" : "zero point", to_string(operand), to_string(x));
  }
  return {};
}

}  // namespace lathe
