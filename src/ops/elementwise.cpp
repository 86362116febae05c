// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/pointwise.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

bool is_logical(Op op) { return op == Op::logical_and || op == Op::logical_or || op == Op::logical_xor; }
bool is_comparison(Op op) {
  return op == Op::equal || op == Op::greater || op == Op::less || op == Op::greater_equal || op == Op::less_equal;
}
bool is_bitwise(Op op) {
  return op == Op::bitwise_and || op == Op::bitwise_or || op == Op::bitwise_xor || op == Op::shift_left ||
         op == Op::shift_right;
}

// What the op does to integers of `bits` bits, held in T = int64_t or (for u64) uint64_t. The caller wraps the result.
template <class T>
T integer_pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;  // as 1 / base^n, truncated
  }
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto n = static_cast<uint64_t>(exponent); n; n >>= 1, square *= square)
    if (n & 1) result *= square;
  return static_cast<T>(result);
}

// Division by zero gives 0, and the one overflowing quotient wraps.
template <class T>
T truncated_div(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(-static_cast<uint64_t>(a));
  }
  return a / b;
}

template <class T>
T truncated_rest(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return a % b;
}

template <class T>
T floored_rest(T a, T b) {
  const T rest = truncated_rest(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <class T>
T shift(T a, T count, bool left, uint64_t bits) {
  const auto by = static_cast<uint64_t>(count);  // a negative count is a huge one
  if (by >= bits) return 0;
  return left ? static_cast<T>(static_cast<uint64_t>(a) << by) : static_cast<T>(a >> by);
}

template <class T>
T integer_op(Op op, T a, T b, uint64_t bits) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::add:
      return static_cast<T>(ua + ub);
    case Op::sub:
      return static_cast<T>(ua - ub);
    case Op::mul:
      return static_cast<T>(ua * ub);
    case Op::div:
      return truncated_div(a, b);
    case Op::max:
      return std::max(a, b);
    case Op::min:
      return std::min(a, b);
    case Op::pow:
      return integer_pow(a, b);
    case Op::floor_div: {
      const T rest = truncated_rest(a, b);
      return truncated_div(a, b) - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
    }
    case Op::mod:
      return floored_rest(a, b);
    case Op::fmod:
      return truncated_rest(a, b);
    case Op::logical_and:
      return a && b;
    case Op::logical_or:
      return a || b;
    case Op::logical_xor:
      return !a != !b;
    case Op::equal:
      return a == b;
    case Op::greater:
      return a > b;
    case Op::less:
      return a < b;
    case Op::greater_equal:
      return a >= b;
    case Op::less_equal:
      return a <= b;
    case Op::bitwise_and:
      return a & b;
    case Op::bitwise_or:
      return a | b;
    case Op::bitwise_xor:
      return a ^ b;
    case Op::shift_left:
      return shift(a, b, true, bits);
    case Op::shift_right:
      return shift(a, b, false, bits);
  }
  return 0;
}

// As Python: the result has the divisor's sign.
double floored_fmod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? std::copysign(0.0, b) : rest;
}

double floating_op(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::max:
      return std::isnan(a) || a > b ? a : b;  // NaN wins
    case Op::min:
      return std::isnan(a) || a < b ? a : b;
    case Op::pow:
      return std::pow(a, b);
    case Op::floor_div:
      return std::floor(a / b);
    case Op::mod:
      return floored_fmod(a, b);
    case Op::fmod:
      return std::fmod(a, b);
    case Op::equal:
      return a == b;
    case Op::greater:
      return a > b;
    case Op::less:
      return a < b;
    case Op::greater_equal:
      return a >= b;
    case Op::less_equal:
      return a <= b;
    default:
      return 0;  // the rule admits integers only
  }
}

// Symbolic contents.

std::optional<Expr> symbolic_div(const InferContext& context, const Expr& a, const Expr& b) {
  const Range dividend = context.range(a), divisor = context.range(b);
  if (divisor.min < 0 || b == Expr(0)) return std::nullopt;
  if (dividend.min >= 0) return floordiv(a, b);
  return floordiv(max(a, 0), b) - floordiv(max(Expr(0) - a, 0), b);
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
  const std::vector<Expr>*a = context.elements(0), *b = context.elements(1);
  if (!a || !b || shape.size() > 1 || is_floating(context.dtype(0)) || is_floating(context.dtype(1))) return;
  const size_t count = a->size() == 1 ? b->size() : a->size();
  if (b->size() != count && b->size() != 1) return;
  std::vector<Expr> out;
  for (size_t i = 0; i < count; ++i) {
    std::optional<Expr> element = symbolic_op(context, op, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!element || !element->is_valid()) return;
    out.push_back(*std::move(element));
  }
  context.set_elements(0, std::move(out));
}

Result<> check_types(const InferContext& context, Op op) {
  if (op == Op::pow) {
    LATHE_TRY(require_numeric(context, 0));
    return require_numeric(context, 1);
  }
  LATHE_TRY(require_same_dtype(context, 0, 1));
  const bool boolean = context.dtype(0) == DType::boolean;
  if (is_logical(op) && !boolean)
    return fail(ErrorCode::type_mismatch,
                "inputs have type {}, but a logical operation needs bool; cast or compare first",
                name_of(context.dtype(0)));
  if (is_bitwise(op)) return require_integer(context, 0);
  if (boolean && !is_logical(op) && op != Op::equal)
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
