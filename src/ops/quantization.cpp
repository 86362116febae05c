// SPDX-License-Identifier: Apache-2.0
#include "ops/quantization.h"

#include <fmt/ranges.h>

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
    case DType::i4:
      return IntegerRange{-8, 7};
    case DType::u4:
      return IntegerRange{0, 15};
    case DType::i2:
      return IntegerRange{-2, 1};
    case DType::u2:
      return IntegerRange{0, 3};
    default:
      return std::nullopt;
  }
}

bool is_quantized_float(DType dtype) {
  return is_storage_only(dtype) && !quantized_range(dtype) && dtype != DType::f8e8m0;
}

namespace {

Result<> check_blocks(InferContext& context, size_t operand, const Ints& blocks) {
  const Shape &x = context.shape(0), &have = context.shape(operand);
  const auto mismatch = [&] {
    return fail(ErrorCode::shape_mismatch,
                "the {} of shape {} has not one element for each block of [{}] in x of shape {}",
                operand == 1 ? "scale" : "zero point", to_string(have), fmt::join(blocks, ", "), to_string(x));
  };
  if (blocks.size() != x.size() || have.size() != x.size()) return mismatch();
  for (size_t d = 0; d < x.size(); ++d) {
    if (blocks[d] < 0)
      return fail(ErrorCode::attribute_invalid, "a block has extent {}; give 1 or more, or 0 for the whole dimension",
                  blocks[d]);
    if (!context.assume_equal(have[d], blocks[d] == 0 ? Expr(1) : ceildiv(x[d], blocks[d]))) return mismatch();
  }
  return {};
}

}  // namespace

Result<> check_quantization(InferContext& context, DType levels, const Ints& blocks) {
  // Scales of MX formats are powers of two.
  if (context.dtype(1) != DType::f8e8m0 && context.dtype(1) != DType::f8e4m3fn) LATHE_TRY(require_floating(context, 1));
  if (context.has(2) && context.dtype(2) != levels)
    return fail(ErrorCode::type_mismatch, "the zero point has type {}, but the quantised values have type {}",
                name_of(context.dtype(2)), name_of(levels));
  if (!blocks.empty()) {
    for (size_t i = 1; i < context.num_inputs(); ++i)
      if (context.has(i)) LATHE_TRY(check_blocks(context, i, blocks));
    return {};
  }
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

Result<Tensor> repeat_blocks(const Tensor& operand, const Dims& x, const Ints& blocks) {
  LATHE_ASSIGN(Tensor wide, Tensor::allocate(DType::f64, x));
  const std::vector<double> values = to_doubles(operand);
  const Dims strides = row_major_strides(operand.dims());
  Walk walk(x, {});
  for (int64_t i = 0; i < wide.volume(); ++i, walk.next()) {
    int64_t offset = 0;
    for (size_t d = 0; d < x.size(); ++d)
      if (blocks[d] > 0) offset += walk.index()[d] / blocks[d] * strides[d];
    wide.mutable_as<double>()[i] = values[static_cast<size_t>(offset)];
  }
  return wide;
}

}  // namespace lathe
