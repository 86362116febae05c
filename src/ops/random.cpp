// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/philox.h"
#include "ops/random_range.h"
#include "ops/random_shape.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

double rounded(double value, DType dtype) {
  Result<Tensor> tensor = Tensor::allocate(dtype, {1});
  if (!tensor) return value;
  from_doubles({&value, 1}, *tensor);
  return tensor->at_double(0);
}

}  // namespace

Result<Shape> drawn_shape(InferContext& context, std::string_view op) {
  LATHE_ASSIGN(const int64_t rank, list_length(context, 0, fmt::format("{}: shape", op)));
  if (context.dtype(1) != DType::i64 || !context.assume_equal(volume(context.shape(1)), 1))
    return fail(ErrorCode::type_mismatch, "{}: the seed is {}{}, but one i64 is needed", op, name_of(context.dtype(1)),
                to_string(context.shape(1)));
  Shape output(static_cast<size_t>(rank));
  for (size_t i = 0; i < output.size(); ++i) {
    const std::optional<Expr> known = context.element(0, i);
    output[i] = known ? *known : context.new_symbol("random_dim", i);
    if (output[i].as_constant().value_or(0) < 0)
      return fail(ErrorCode::shape_mismatch, "{}: dimension {} is {}, expected 0 or more", op, i,
                  *output[i].as_constant());
  }
  return output;
}

Result<> infer_random(InferContext& context) {
  const auto& attrs = context.attrs<RandomAttrs>();
  const bool uniform = attrs.op == RandomOp::uniform;
  if (!is_floating(attrs.dtype))
    return fail(ErrorCode::attribute_invalid, "random: the type is {}, but a floating type is needed",
                name_of(attrs.dtype));
  const bool finite = std::isfinite(rounded(attrs.a, attrs.dtype)) && std::isfinite(rounded(attrs.b, attrs.dtype));
  if (!finite || attrs.b < (uniform ? attrs.a : 0))
    return fail(ErrorCode::attribute_invalid, "random: {} is {} and {} is {} in {}, but both must be finite and {}",
                uniform ? "low" : "the mean", attrs.a, uniform ? "high" : "the standard deviation", attrs.b,
                name_of(attrs.dtype), uniform ? "low not above high" : "the deviation not below 0");
  LATHE_ASSIGN(Shape output, drawn_shape(context, "random"));
  context.set(0, attrs.dtype, std::move(output));
  return {};
}

Result<> eval_random(EvalContext& context) {
  const auto& attrs = context.attrs<RandomAttrs>();
  const auto seed = static_cast<uint64_t>(context.input(1).at(0));
  Tensor& output = context.output(0);
  std::vector<double> values(static_cast<size_t>(output.volume()));
  const double last = last_in_range(attrs);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = random_bits(seed, i);
    if (attrs.op == RandomOp::normal)
      values[i] = std::fma(normal_number(bits), attrs.b, attrs.a);
    else
      values[i] =
          std::min(std::fma(uniform_number(bits, random_digits(attrs.dtype)), attrs.b - attrs.a, attrs.a), last);
  }
  from_doubles(values, output);
  return {};
}

double last_in_range(const RandomAttrs& attrs) {
  if (attrs.a >= attrs.b) return attrs.a;
  const double end = rounded(attrs.b, attrs.dtype);
  if (end < attrs.b) return end;
  const double least = attrs.dtype == DType::f64   ? 0x1p-1074
                       : attrs.dtype == DType::f32 ? 0x1p-149
                       : attrs.dtype == DType::f16 ? 0x1p-24
                                                   : 0x1p-133;
  int exponent = 0;
  const bool is_power = std::frexp(end, &exponent) == 0.5;  // below which neighbours lie closer together
  return end - std::max(least, std::ldexp(1, exponent - random_digits(attrs.dtype) - (is_power ? 1 : 0)));
}

}  // namespace lathe
