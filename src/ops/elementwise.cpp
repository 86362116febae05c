// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "base/scalars.h"
#include "ops/pointwise.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

uint32_t traits_of(Op op) {
  switch (op) {
#define LATHE_BINARY(name, traits, formula, integers) \
  case Op::name:                                      \
    return traits;
#include "base/scalars.def"
  }
  return 0;
}

bool is_comparison(Op op) { return traits_of(op) & kTruth; }

// What the op does to integers of `bits` bits, held in T = int64_t or (for u64) uint64_t. The caller wraps the result.
template <class T>
T integer_op(Op op, T a, T b, uint64_t bits) {
  using word = uint64_t;
  switch (op) {
#define LATHE_BINARY(name, traits, formula, integers) \
  case Op::name:                                      \
    return integers;
#include "base/scalars.def"
  }
  return 0;
}

double floating_op(Op op, double a, double b) {
  switch (op) {
#define LATHE_BINARY(name, traits, formula, integers) \
  case Op::name:                                      \
    return formula;
#include "base/scalars.def"
  }
  return 0;
}

// Symbolic contents.

// Towards zero. Where the divisor is 0, the expression has no value, and sizes that need it are refused then.
std::optional<Expr> symbolic_div(const InferContext& context, const Expr& a, const Expr& b) {
  if (b == Expr(0)) return std::nullopt;
  const Range dividend = context.range(a), divisor = context.range(b);
  const Expr magnitude = divisor.min >= 0 ? b : max(b, Expr(0) - b);
  const Expr quotient = dividend.min >= 0 ? floordiv(a, magnitude)
                                          : floordiv(max(a, 0), magnitude) - floordiv(max(Expr(0) - a, 0), magnitude);
  return divisor.min >= 0 ? quotient : quotient * floordiv(b, magnitude);  // by 1 or -1
}

// The truth of a < b (or a <= b), when it is the same for all values of the symbols.
std::optional<Expr> symbolic_less(const InferContext& context, const Expr& a, const Expr& b, int64_t slack) {
  const Range difference = context.range(b - a + slack);
  if (difference.min > 0) return 1;
  if (difference.max <= 0) return 0;
  return std::nullopt;
}

std::optional<Expr> symbolic_op(const InferContext& context, Op op, const Expr& a, const Expr& b) {
  const DType dtype = context.dtype(0);
  if (const auto x = a.as_constant(), y = b.as_constant(); x && y) {
    const uint64_t bits = size_of(dtype) * 8;
    const int64_t value = dtype == DType::u64 ? static_cast<int64_t>(integer_op<uint64_t>(op, *x, *y, bits))
                                              : integer_op<int64_t>(op, *x, *y, bits);
    return is_comparison(op) ? Expr(value) : Expr(wrap_to(dtype, value));
  }
  if (!may_hold_symbols(dtype)) return std::nullopt;
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::max:
      return max(a, b);
    case Op::min:
      return min(a, b);
    case Op::div:
      return symbolic_div(context, a, b);
    case Op::floor_div:
      return b == Expr(0) ? std::nullopt : std::optional(floordiv(a, b));
    case Op::mod:
      return b == Expr(0) ? std::nullopt : std::optional(mod(a, b));
    case Op::less:
      return symbolic_less(context, a, b, 0);
    case Op::less_equal:
      return symbolic_less(context, a, b, 1);
    case Op::greater:
      return symbolic_less(context, b, a, 0);
    case Op::greater_equal:
      return symbolic_less(context, b, a, 1);
    case Op::equal: {
      if (a == b) return 1;
      const Range difference = context.range(a - b);
      return difference.min > 0 || difference.max < 0 ? std::optional(Expr(0)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

void infer_elements(InferContext& context, Op op, const Shape& shape) {
  const std::vector<Expr>*a = context.partial_elements(0), *b = context.partial_elements(1);
  if (!a || !b || shape.size() > 1 || is_floating(context.dtype(0)) || is_floating(context.dtype(1))) return;
  const size_t count = a->size() == 1 ? b->size() : a->size();
  if (b->size() != count && b->size() != 1) return;
  std::vector<Expr> out;
  for (size_t i = 0; i < count; ++i) {
    const Expr &x = (*a)[a->size() == 1 ? 0 : i], &y = (*b)[b->size() == 1 ? 0 : i];
    const bool known = x.is_valid() && y.is_valid();
    out.push_back((known ? symbolic_op(context, op, x, y) : std::nullopt).value_or(Expr::invalid()));
  }
  context.set_elements(0, std::move(out));
}

Result<> check_types(const InferContext& context, Op op) {
  if (op == Op::pow) {
    LATHE_TRY(require_numeric(context, 0));
    return require_numeric(context, 1);
  }
  LATHE_TRY(require_same_dtype(context, 0, 1));
  const uint32_t takes = traits_of(op) & (kNumbers | kBooleans);
  const bool boolean = context.dtype(0) == DType::boolean;
  if (takes == kBooleans && !boolean)
    return fail(ErrorCode::type_mismatch,
                "inputs have type {}, but a logical operation needs bool; cast or compare first",
                name_of(context.dtype(0)));
  if (takes == kIntegers) return require_integer(context, 0);
  if (boolean && !(takes & kBooleans))
    return fail(ErrorCode::type_mismatch, "inputs have type bool, but arithmetic needs numbers; cast them first");
  return {};
}

}  // namespace

Result<> infer_elementwise(InferContext& context) {
  const Op op = context.attrs<ElementwiseAttrs>().op;
  LATHE_TRY(check_types(context, op));
  LATHE_ASSIGN(const Shape shape, broadcast(context, context.shape(0), context.shape(1)));
  context.set(0, is_comparison(op) ? DType::boolean : context.dtype(0), shape);
  infer_elements(context, op, shape);
  return {};
}

Result<> eval_elementwise(EvalContext& context) {
  const Op op = context.attrs<ElementwiseAttrs>().op;
  const Tensor &a = context.input(0), &b = context.input(1);
  Tensor& y = context.output(0);
  const uint64_t bits = size_of(a.dtype()) * 8;
  if (is_floating(a.dtype()) || is_floating(b.dtype())) {
    map_two<double>(a, b, y, [op](double x, double z) { return floating_op(op, x, z); });
  } else if (a.dtype() == DType::u64) {
    map_two<int64_t>(a, b, y, [op](int64_t x, int64_t z) {
      return static_cast<int64_t>(integer_op<uint64_t>(op, static_cast<uint64_t>(x), static_cast<uint64_t>(z), 64));
    });
  } else {
    map_two<int64_t>(a, b, y, [op, bits](int64_t x, int64_t z) { return integer_op(op, x, z, bits); });
  }
  return {};
}

}  // namespace lathe
