// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/pointwise.h"

namespace lathe {
namespace {

using Op = UnaryOp;

double floating_op(const UnaryAttrs& attrs, double x) {
  switch (attrs.op) {
    case Op::exp:
      return std::exp(x);
    case Op::log:
      return std::log(x);
    case Op::sqrt:
      return std::sqrt(x);
    case Op::recip:
      return 1 / x;
    case Op::abs:
      return std::fabs(x);
    case Op::neg:
      return -x;
    case Op::sin:
      return std::sin(x);
    case Op::cos:
      return std::cos(x);
    case Op::tan:
      return std::tan(x);
    case Op::sinh:
      return std::sinh(x);
    case Op::cosh:
      return std::cosh(x);
    case Op::asin:
      return std::asin(x);
    case Op::acos:
      return std::acos(x);
    case Op::atan:
      return std::atan(x);
    case Op::asinh:
      return std::asinh(x);
    case Op::acosh:
      return std::acosh(x);
    case Op::atanh:
      return std::atanh(x);
    case Op::ceil:
      return std::ceil(x);
    case Op::floor:
      return std::floor(x);
    case Op::erf:
      return std::erf(x);
    case Op::sign:
      return std::isnan(x) ? x : (x > 0) - (x < 0);
    case Op::round:
      return std::nearbyint(x);  // half to even, in the default rounding mode
    case Op::is_inf:
      return std::isinf(x) && (x > 0 ? attrs.detect_positive : attrs.detect_negative);
    case Op::is_nan:
      return std::isnan(x);
    case Op::logical_not:
    case Op::bitwise_not:
      break;  // not for floating types
  }
  return 0;
}

int64_t integer_op(Op op, int64_t x, bool is_signed) {
  switch (op) {
    case Op::abs:
      return is_signed && x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x;
    case Op::neg:
      return static_cast<int64_t>(-static_cast<uint64_t>(x));
    case Op::sign:
      return is_signed ? (x > 0) - (x < 0) : x != 0;
    case Op::logical_not:
      return !x;
    case Op::bitwise_not:
      return ~x;
    default:
      return x;
  }
}

bool takes_integers(Op op) { return op == Op::abs || op == Op::neg || op == Op::sign || op == Op::bitwise_not; }

Result<> check_type(const InferContext& context, Op op) {
  const DType dtype = context.dtype(0);
  if (op == Op::logical_not) {
    if (dtype == DType::boolean) return {};
    return fail(ErrorCode::type_mismatch, "input 0 has type {}, but logical_not needs bool; cast or compare first",
                name_of(dtype));
  }
  if (op == Op::bitwise_not) return require_integer(context, 0);
  return takes_integers(op) ? require_numeric(context, 0) : require_floating(context, 0);
}

std::optional<Expr> symbolic_op(Op op, DType dtype, const Expr& x) {
  if (const auto value = x.as_constant())
    return wrap_to(dtype, integer_op(op, *value, class_of(dtype) != DTypeClass::unsigned_int));
  if (!may_hold_symbols(dtype)) return std::nullopt;
  if (op == Op::neg) return Expr(0) - x;
  if (op == Op::abs) return max(x, Expr(0) - x);
  return std::nullopt;
}

}  // namespace

Result<> infer_unary(InferContext& context) {
  const Op op = context.attrs<UnaryAttrs>().op;
  LATHE_TRY(check_type(context, op));
  const bool to_bool = op == Op::is_inf || op == Op::is_nan;
  context.set(0, to_bool ? DType::boolean : context.dtype(0), context.shape(0));
  const std::vector<Expr>* elements = context.elements(0);
  if (!elements) return {};
  std::vector<Expr> out;
  for (const Expr& element : *elements) {
    std::optional<Expr> value = symbolic_op(op, context.dtype(0), element);
    if (!value) return {};
    out.push_back(*std::move(value));
  }
  context.set_elements(0, std::move(out));
  return {};
}

Result<> eval_unary(EvalContext& context) {
  const UnaryAttrs& attrs = context.attrs<UnaryAttrs>();
  const Tensor& x = context.input(0);
  const bool is_signed = class_of(x.dtype()) == DTypeClass::signed_int;
  if (is_floating(x.dtype()))
    map_one<double>(x, context.output(0), [&](double v) { return floating_op(attrs, v); });
  else
    map_one<int64_t>(x, context.output(0), [&](int64_t v) { return integer_op(attrs.op, v, is_signed); });
  return {};
}

}  // namespace lathe
