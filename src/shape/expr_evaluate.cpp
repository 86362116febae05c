// SPDX-License-Identifier: Apache-2.0
// Values of expressions: exact evaluation, substitution and interval bounds.
#include <algorithm>

#include "shape/expr_poly.h"

namespace lathe {
namespace {

// Intermediate values have 128 bits, so that the order of a sum's terms cannot make it overflow.
using Wide = __int128;

template <class T>
struct Quotient {
  T floor, rest;
};

template <class T>
Quotient<T> divide_floor(T a, T b) {
  const T quotient = a / b, rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) return {quotient - 1, rest + b};
  return {quotient, rest};
}

bool fits(Wide value) { return value >= INT64_MIN && value <= INT64_MAX; }

Quotient<Wide> divide_floor(Wide a, Wide b) {
  if (!fits(a) || !fits(b) || b == -1) return divide_floor<Wide>(a, b);
  const Quotient<int64_t> narrow = divide_floor<int64_t>(static_cast<int64_t>(a), static_cast<int64_t>(b));
  return {narrow.floor, narrow.rest};
}

// False on overflow. Numbers of 64 bits, which most are, have a product of 128: that needs no further look.
bool multiply(Wide& a, Wide b) {
  if (!fits(a) || !fits(b)) return !__builtin_mul_overflow(a, b, &a);
  a = Wide{static_cast<int64_t>(a)} * static_cast<int64_t>(b);
  return true;
}

bool evaluate_wide(const Expr& e, std::span<const int64_t> values, Wide& sum);

bool evaluate_atom(const Atom& atom, std::span<const int64_t> values, Wide& value) {
  if (!atom.call) {
    if (atom.symbol >= values.size() || values[atom.symbol] == Expr::kUnbound) return false;
    value = values[atom.symbol];
    return true;
  }
  Wide a, b;
  if (!evaluate_wide(atom.call->a, values, a) || !evaluate_wide(atom.call->b, values, b)) return false;
  switch (atom.call->kind) {
    case CallKind::min:
      value = std::min(a, b);
      return true;
    case CallKind::max:
      value = std::max(a, b);
      return true;
    case CallKind::floordiv:
      if (b != 0) value = divide_floor(a, b).floor;
      return b != 0;
    case CallKind::mod:
      if (b != 0) value = divide_floor(a, b).rest;
      return b != 0;
    case CallKind::broadcast:
      value = a == 1 ? b : a;
      return a == 1 || b == 1 || a == b;
  }
  return false;
}

bool evaluate_wide(const Expr& e, std::span<const int64_t> values, Wide& sum) {
  sum = ExprAccess::constant(e);
  const auto* const poly = ExprAccess::poly(e);
  if (!poly) return true;
  for (const Term& term : poly->terms) {
    Wide product = term.coefficient, value;
    for (const Factor& factor : term.monomial) {
      if (!evaluate_atom(factor.atom, values, value)) return false;
      for (uint32_t i = 0; i < factor.power; ++i)
        if (!multiply(product, value)) return false;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return false;
  }
  return true;
}

Expr substitute_atom(const Atom& atom, std::span<const Expr> replacements) {
  if (!atom.call) return atom.symbol < replacements.size() ? replacements[atom.symbol] : Expr::symbol(atom.symbol);
  const CallKind kind = atom.call->kind;
  if (kind == CallKind::min || kind == CallKind::max) {
    std::vector<Expr> operands = operands_of(*atom.call);
    for (Expr& operand : operands) operand = operand.substitute(replacements);
    return combine(operands, kind);
  }
  return call_of(kind, atom.call->a.substitute(replacements), atom.call->b.substitute(replacements));
}

// Interval arithmetic. A lower bound of -kInfinity and an upper bound of kInfinity mean "no bound". As the other bound
// they are numbers: a lower bound above INT64_MAX is stored as kInfinity, which is lower and therefore still true.
constexpr int64_t kInfinity = Range::kUnbounded;

int64_t saturate(Wide value) {
  return static_cast<int64_t>(std::clamp<Wide>(value, -Wide{kInfinity}, Wide{kInfinity}));
}

int64_t add_lower(int64_t a, int64_t b) {
  return a == -kInfinity || b == -kInfinity ? -kInfinity : saturate(Wide{a} + b);
}
int64_t add_upper(int64_t a, int64_t b) { return a == kInfinity || b == kInfinity ? kInfinity : saturate(Wide{a} + b); }

// Infinity times 0 is 0: the actual value is finite.
int64_t multiply_bounds(int64_t a, int64_t b) { return saturate(Wide{a} * b); }

struct Bound {
  int64_t value;
  bool infinite;
};
Bound lower(Range range) { return {range.min, range.min == -kInfinity}; }
Bound upper(Range range) { return {range.max, range.max == kInfinity}; }

// floor(a / b), or what it tends to where a or b does not end.
int64_t divide_bounds(Bound a, Bound b) {
  const bool negative = (a.value < 0) != (b.value < 0) && a.value != 0;
  if (b.infinite) return negative ? -1 : 0;
  if (a.infinite) return negative ? -kInfinity : kInfinity;
  return saturate(divide_floor(Wide{a.value}, Wide{b.value}).floor);
}

Range multiply_ranges(Range a, Range b) {
  const auto [low, high] = std::minmax({multiply_bounds(a.min, b.min), multiply_bounds(a.min, b.max),
                                        multiply_bounds(a.max, b.min), multiply_bounds(a.max, b.max)});
  return {low, high};
}

// For a fixed sign of b the quotient is monotone in both operands: the extremes are at the corners.
Range divide_ranges(Range a, Range b) {
  Range result{kInfinity, -kInfinity};
  const auto corner = [&](Bound divisor) {
    for (const Bound dividend : {lower(a), upper(a)}) {
      const int64_t quotient = divide_bounds(dividend, divisor);
      result = {std::min(result.min, quotient), std::max(result.max, quotient)};
    }
  };
  if (b.max > 0) corner({std::max<int64_t>(b.min, 1), false}), corner(upper(b));
  if (b.min < 0) corner({std::min<int64_t>(b.max, -1), false}), corner(lower(b));
  return b == Range{0, 0} ? Range{} : result;
}

Range mod_ranges(Range a, Range b) {
  if (b.min > 0 && a.min >= 0 && a.max < b.min) return a;
  Range result{0, 0};
  if (b.max > 0) result.max = b.max == kInfinity ? kInfinity : b.max - 1;
  if (b.min < 0) result.min = b.min == -kInfinity ? -kInfinity : b.min + 1;
  if (b.min > 0 && a.min >= 0) result.max = std::min(result.max, a.max);
  if (b.max < 0 && a.max <= 0) result.min = std::max(result.min, a.min);
  return result;
}

// An operand that cannot be 1 is the result, where there is one.
Range broadcast_ranges(Range a, Range b) {
  const auto may_be_one = [](Range range) { return range.min <= 1 && range.max >= 1; };
  if (!may_be_one(a)) return a;
  if (!may_be_one(b)) return b;
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

// How often an expression is rewritten to find a better bound. A rewriting multiplies the work by the number of its
// forms: without its rounding, and each operand of a min or max.
constexpr int kRefinements = 3;
constexpr uint32_t kMaxRefinedSize = 200;

Range range_of(const Expr& e, std::span<const Range> ranges, int refinements);

Range range_of(const Atom& atom, std::span<const Range> ranges, int refinements) {
  if (!atom.call) return atom.symbol < ranges.size() ? ranges[atom.symbol] : Range{};
  const Range a = range_of(atom.call->a, ranges, refinements), b = range_of(atom.call->b, ranges, refinements);
  switch (atom.call->kind) {
    case CallKind::floordiv:
      return divide_ranges(a, b);
    case CallKind::mod:
      return mod_ranges(a, b);
    case CallKind::min:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case CallKind::max:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case CallKind::broadcast:
      return broadcast_ranges(a, b);
  }
  return {};
}

// base^power: an even power is never negative, which the product of the intervals alone would not tell.
Range power_range(Range base, uint32_t power) {
  Range result = base;
  for (uint32_t i = 1; i < power; ++i) result = multiply_ranges(result, base);
  if (power % 2 == 0) result.min = std::max<int64_t>(result.min, 0);
  return result;
}

Range intersect(Range a, Range b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

// A sum with a min or max among its terms lies where the min or max of the two sums lies: that of s - max(s - 128, 0)
// is at most 128, which the terms one by one do not tell.
Range range_as_choice(const Expr& e, CallKind kind, std::span<const Range> ranges, int refinements) {
  const std::vector<Expr> choices = choices_of(e, kind);
  if (choices.empty()) return {};
  Range total = range_of(choices[0], ranges, refinements);
  for (size_t i = 1; i < choices.size(); ++i) {
    const Range range = range_of(choices[i], ranges, refinements);
    if (kind == CallKind::max)
      total = {std::max(total.min, range.min), std::max(total.max, range.max)};
    else
      total = {std::min(total.min, range.min), std::min(total.max, range.max)};
  }
  return total;
}

// The largest quotient by a constant among the terms; null when there is none.
const Term* largest_quotient(const Expr& e) {
  const Term* largest = nullptr;
  for (const Term& term : ExprAccess::terms(e)) {
    const Call* call = term.monomial.size() == 1 ? term.monomial[0].atom.call.get() : nullptr;
    if (!call || call->kind != CallKind::floordiv || term.monomial[0].power != 1 || !call->b.is_constant()) continue;
    if (!largest || call->size > largest->monomial[0].atom.call->size) largest = &term;
  }
  return largest;
}

// A quotient without its rounding cancels: floordiv(x, k) is (x - r) / k for an r from 0 to k - 1, so that
// 7*floordiv(x + 6, 7) - x is 6 - r, and not below 0. k times the sum is bounded, and divided again.
Range range_without_rounding(const Expr& e, std::span<const Range> ranges, int refinements) {
  const Term* term = largest_quotient(e);
  if (!term) return {};
  const Call& call = *term->monomial[0].atom.call;
  const int64_t divisor = *call.b.as_constant();
  const Expr scaled = (e - from_term(term->coefficient, term->monomial)) * call.b + call.a * Expr(term->coefficient);
  if (divisor <= 0 || !scaled.is_valid()) return {};
  const int64_t coefficient = saturate(term->coefficient);
  const Range range = range_of(scaled, ranges, refinements);
  const Range rest = multiply_ranges({coefficient, coefficient}, {1 - divisor, 0});
  const Range total{add_lower(range.min, rest.min), add_upper(range.max, rest.max)};
  return {total.min == -kInfinity ? total.min : -divide_floor<int64_t>(-total.min, divisor).floor,
          total.max == kInfinity ? total.max : divide_floor<int64_t>(total.max, divisor).floor};
}

Range range_of(const Expr& e, std::span<const Range> ranges, int refinements) {
  Range sum{saturate(ExprAccess::constant(e)), saturate(ExprAccess::constant(e))};
  for (const Term& term : ExprAccess::terms(e)) {
    Range product{saturate(term.coefficient), saturate(term.coefficient)};
    for (const Factor& factor : term.monomial)
      product = multiply_ranges(product, power_range(range_of(factor.atom, ranges, refinements), factor.power));
    sum = {add_lower(sum.min, product.min), add_upper(sum.max, product.max)};
  }
  if (ExprAccess::terms(e).empty() || refinements == 0 || e.size() > kMaxRefinedSize) return sum;
  for (const CallKind kind : {CallKind::min, CallKind::max})
    sum = intersect(sum, range_as_choice(e, kind, ranges, refinements - 1));
  return intersect(sum, range_without_rounding(e, ranges, refinements - 1));
}

}  // namespace

std::optional<int64_t> Expr::evaluate(std::span<const int64_t> values) const {
  if (!valid_) return std::nullopt;
  if (!poly_) return constant_;
  Wide value;
  if (!evaluate_wide(*this, values, value) || !fits(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Expr Expr::substitute(std::span<const Expr> replacements) const {
  if (!valid_ || !poly_) return *this;
  Expr sum = constant_;
  for (const Term& term : poly_->terms) {
    Expr product = term.coefficient;
    for (const Factor& factor : term.monomial) {
      const Expr value = substitute_atom(factor.atom, replacements);
      for (uint32_t i = 0; i < factor.power && product.is_valid(); ++i) product *= value;
    }
    sum += product;
    if (!sum.is_valid()) break;
  }
  return sum;
}

Range Expr::range(std::span<const Range> ranges) const {
  if (!valid_) return {};
  if (!poly_) return {saturate(constant_), saturate(constant_)};
  return range_of(*this, ranges, kRefinements);
}

}  // namespace lathe
