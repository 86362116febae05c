// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "base/scalars.h"
#include "ops/pointwise.h"

namespace lathe {
namespace {

using Op = UnaryOp;

uint32_t traits_of(Op op) {
  switch (op) {
#define LATHE_UNARY(name, traits, formula, integers) \
  case Op::name:                                     \
    return traits;
#include "base/scalars.def"
  }
  return 0;
}

double floating_op(const UnaryAttrs& attrs, double a) {
  using real = double;
  const double x = attrs.detect_negative, y = attrs.detect_positive;
  switch (attrs.op) {
#define LATHE_UNARY(name, traits, formula, integers) \
  case Op::name:                                     \
    return formula;
#include "base/scalars.def"
  }
  return 0;
}

// T is uint64_t for elements of u64, else int64_t.
template <class T>
int64_t integer_op(Op op, T a) {
  using word = uint64_t;
  switch (op) {
#define LATHE_UNARY(name, traits, formula, integers) \
  case Op::name:                                     \
    return static_cast<int64_t>(integers);
#include "base/scalars.def"
  }
  return 0;
}

int64_t integer_op(Op op, DType dtype, int64_t a) {
  return dtype == DType::u64 ? integer_op(op, static_cast<uint64_t>(a)) : integer_op(op, a);
}

Result<> check_type(const InferContext& context, Op op) {
  const DType dtype = context.dtype(0);
  switch (traits_of(op) & (kNumbers | kBooleans)) {
    case kBooleans:
      if (dtype == DType::boolean) return {};
      return fail(ErrorCode::type_mismatch, "input 0 has type {}, but logical_not needs bool; cast or compare first",
                  name_of(dtype));
    case kIntegers:
      return require_integer(context, 0);
    case kReals:
      return require_floating(context, 0);
    default:
      return require_numeric(context, 0);
  }
}

std::optional<Expr> symbolic_op(Op op, DType dtype, const Expr& x) {
  if (const auto value = x.as_constant()) return wrap_to(dtype, integer_op(op, dtype, *value));
  if (!may_hold_symbols(dtype)) return std::nullopt;
  if (op == Op::neg) return Expr(0) - x;
  if (op == Op::abs) return max(x, Expr(0) - x);
  return std::nullopt;
}

}  // namespace

Result<> infer_unary(InferContext& context) {
  const Op op = context.attrs<UnaryAttrs>().op;
  LATHE_TRY(check_type(context, op));
  context.set(0, traits_of(op) & kTruth ? DType::boolean : context.dtype(0), context.shape(0));
  const std::vector<Expr>* elements = context.partial_elements(0);
  if (!elements) return {};
  std::vector<Expr> out;
  for (const Expr& element : *elements)
    out.push_back(symbolic_op(op, context.dtype(0), element).value_or(Expr::invalid()));
  context.set_elements(0, std::move(out));
  return {};
}

Result<> eval_unary(EvalContext& context) {
  const UnaryAttrs& attrs = context.attrs<UnaryAttrs>();
  const Tensor& x = context.input(0);
  if (is_floating(x.dtype()))
    map_one<double>(x, context.output(0), [&](double v) { return floating_op(attrs, v); });
  else
    map_one<int64_t>(x, context.output(0), [&](int64_t v) { return integer_op(attrs.op, x.dtype(), v); });
  return {};
}

}  // namespace lathe
