// SPDX-License-Identifier: Apache-2.0
// Simplification of floordiv and mod.
//
// The rule for divisors that may be 0: floordiv and mod have no value there, so a simplification may give the
// expression a value where it had none, but never changes a value that it had. That makes cancelling (floordiv(n*s, n)
// = s) sound without knowing that n is not 0. Identities used, for any integers with b != 0:
//   floordiv(b*q + r, b) = q + floordiv(r, b)          mod(b*q + r, b) = mod(r, b)
//   floordiv(g*a, g*b)   = floordiv(a, b)              mod(g*a, g*b)   = g * mod(a, b)
// and for constants 0 < g, 0 < k, 0 <= r < g:
//   floordiv(g*a + r, g*k) = floordiv(a, k)
//   floordiv(floordiv(x, g) + c, k) = floordiv(x + g*c, g*k)
//   floordiv(-a, k) = -floordiv(a + k - 1, k)          mod(a, k) = a - k * floordiv(a, k)
// so that what is padded to windows, h + mod(-h, 7), is 7 * floordiv(h + 6, 7), and divisible by 7.
// Every rule calls the simplification again on smaller operands, so what no rule touches is a fixed point: the normal
// form does not depend on how an expression was built up.
#include <algorithm>
#include <numeric>

#include "shape/expr_poly.h"

namespace lathe {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
int64_t floor_mod(int64_t a, int64_t b) { return a % b + (((a % b != 0) && ((a < 0) != (b < 0))) ? b : 0); }

int64_t constant_of(const Expr& e) { return ExprAccess::constant(e); }
const std::vector<Term>& terms_of(const Expr& e) { return ExprAccess::terms(e); }

struct Split {
  Expr quotient, rest;  // e = divisor * quotient + rest
};

// Takes out of e multiples of the positive constant: what remains has coefficients of at most half of it, and a
// constant term from 0 to below it.
Split split_by_constant(const Expr& e, int64_t divisor) {
  std::vector<Term> quotient, rest;
  for (const Term& term : terms_of(e)) {
    int64_t times = floor_div(term.coefficient, divisor), left = floor_mod(term.coefficient, divisor);
    if (left > divisor / 2) ++times, left -= divisor;
    if (times != 0) quotient.push_back({times, term.monomial});
    if (left != 0) rest.push_back({left, term.monomial});
  }
  const int64_t constant = constant_of(e);
  return {ExprAccess::make(std::move(quotient), floor_div(constant, divisor)),
          ExprAccess::make(std::move(rest), floor_mod(constant, divisor))};
}

// Takes out of e the terms that a divisor of one term, with a positive coefficient, divides.
Split split_by_term(const Expr& e, const Term& divisor) {
  std::vector<Term> quotient, rest;
  int64_t quotient_constant = 0;
  for (const Term& term : terms_of(e)) {
    std::optional<Monomial> monomial;
    if (term.coefficient % divisor.coefficient == 0) monomial = divide(term.monomial, divisor.monomial);
    if (!monomial)
      rest.push_back(term);
    else if (monomial->empty())
      quotient_constant = term.coefficient / divisor.coefficient;
    else
      quotient.push_back({term.coefficient / divisor.coefficient, std::move(*monomial)});
  }
  return {ExprAccess::make(std::move(quotient), quotient_constant), ExprAccess::make(std::move(rest), constant_of(e))};
}

// The quotient when the polynomial b, with a positive leading coefficient, divides a without rest. The leading monomial
// of the rest falls with every step; the limit is for hostile input.
std::optional<Expr> divide_exactly(const Expr& a, const Expr& b) {
  const Term& lead = terms_of(b)[0];
  Expr quotient, rest = a;
  for (int steps = 0; !rest.is_constant(); ++steps) {
    if (steps == 256) return std::nullopt;
    const Term& top = terms_of(rest)[0];
    if (top.coefficient % lead.coefficient != 0) return std::nullopt;
    std::optional<Monomial> monomial = divide(top.monomial, lead.monomial);
    if (!monomial) return std::nullopt;
    const Expr part = from_term(top.coefficient / lead.coefficient, std::move(*monomial));
    quotient += part;
    rest = rest - part * b;
    if (!rest.is_valid() || !quotient.is_valid()) return std::nullopt;
  }
  if (constant_of(rest) != 0) return std::nullopt;
  return quotient;
}

Monomial intersect(const Monomial& a, const Monomial& b) {
  Monomial both;
  for (const Factor& factor : a)
    for (const Factor& other : b)
      if (compare(factor.atom, other.atom) == 0) both.push_back({factor.atom, std::min(factor.power, other.power)});
  return both;
}

// The greatest monomial that divides every term of e; empty when e has a constant term.
Monomial common_monomial(const Expr& e) {
  if (constant_of(e) != 0 || terms_of(e).empty()) return {};
  Monomial common = terms_of(e)[0].monomial;
  for (const Term& term : terms_of(e)) common = intersect(common, term.monomial);
  return common;
}

// e / by, where `by` divides every term (so e has no constant term unless `by` is empty).
Expr divide_monomial(const Expr& e, const Monomial& by) {
  if (by.empty()) return e;
  std::vector<Term> terms;
  int64_t constant = 0;
  for (const Term& term : terms_of(e)) {
    Monomial quotient = *divide(term.monomial, by);
    if (quotient.empty())
      constant = term.coefficient;
    else
      terms.push_back({term.coefficient, std::move(quotient)});
  }
  return ExprAccess::make(std::move(terms), constant);
}

Expr negate(const Expr& e) { return Expr(0) - e; }

bool leads_negative(const Expr& e) { return terms_of(e)[0].coefficient < 0; }

// floordiv(x, g) + c of `e`, if it has that form with a positive constant g.
const Call* as_shifted_floordiv(const Expr& e) {
  if (terms_of(e).size() != 1) return nullptr;
  const Term& term = terms_of(e)[0];
  if (term.coefficient != 1 || term.monomial.size() != 1 || term.monomial[0].power != 1) return nullptr;
  const Call* call = term.monomial[0].atom.call.get();
  return call && call->kind == CallKind::floordiv && call->b.is_constant() ? call : nullptr;
}

Expr floordiv_by_constant(const Expr& a, int64_t k) {
  if (k < 0) return k == INT64_MIN ? Expr::invalid() : floordiv(negate(a), Expr(-k));
  if (k == 1) return a;
  const Split split = split_by_constant(a, k);
  if (!(split.quotient == Expr(0))) return split.quotient + floordiv(split.rest, Expr(k));
  const Range range = a.range({});
  if (range.min > -Range::kUnbounded && range.max < Range::kUnbounded &&
      floor_div(range.min, k) == floor_div(range.max, k))
    return floor_div(range.min, k);
  if (const int64_t g = content(a, k); g > 1) return floordiv(divide_coefficients(a, g), Expr(k / g));
  if (leads_negative(a))
    if (const Expr flipped = Expr(k - 1) - a; flipped.is_valid()) return negate(floordiv(flipped, Expr(k)));
  if (const Call* inner = as_shifted_floordiv(a)) {
    const Expr merged = inner->a + inner->b * Expr(constant_of(a));
    const Expr divisor = inner->b * Expr(k);
    if (merged.is_valid() && divisor.is_valid()) return floordiv(merged, divisor);
  }
  return ExprAccess::call(CallKind::floordiv, a, Expr(k));
}

Expr mod_by_constant(const Expr& a, int64_t k) {
  if (k < 0) return k == INT64_MIN ? Expr::invalid() : negate(mod(negate(a), Expr(-k)));
  const Expr rest = a - Expr(k) * floordiv(a, Expr(k));
  return rest.is_valid() ? rest : ExprAccess::call(CallKind::mod, a, Expr(k));
}

// The greatest term that divides both a and b; {1, {}} when there is none.
Term common_factor(const Expr& a, const Expr& b) {
  const int64_t x = constant_of(a), y = constant_of(b);
  const int64_t start = x == INT64_MIN || y == INT64_MIN ? 1 : std::gcd(x, y);
  return {content(b, content(a, start)), intersect(common_monomial(a), common_monomial(b))};
}

}  // namespace

int64_t content(const Expr& e, int64_t start) {
  int64_t gcd = start == INT64_MIN ? 1 : start;
  for (const Term& term : terms_of(e)) gcd = term.coefficient == INT64_MIN ? 1 : std::gcd(gcd, term.coefficient);
  return gcd;
}

Expr divide_coefficients(const Expr& e, int64_t divisor) {
  std::vector<Term> terms = terms_of(e);
  for (Term& term : terms) term.coefficient /= divisor;
  return ExprAccess::make(std::move(terms), floor_div(constant_of(e), divisor));
}

Expr floordiv(const Expr& a, const Expr& b) {
  if (!a.is_valid() || !b.is_valid()) return Expr::invalid();
  if (b.is_constant()) {
    const int64_t k = constant_of(b);
    if (k == 0) return Expr::invalid();
    if (!a.is_constant()) return floordiv_by_constant(a, k);
    return k == -1 ? negate(a) : Expr(floor_div(constant_of(a), k));
  }
  if (a == Expr(0)) return a;
  if (leads_negative(b)) {
    const Expr x = negate(a), y = negate(b);
    return x.is_valid() && y.is_valid() ? floordiv(x, y) : Expr::invalid();
  }
  if (const Term g = common_factor(a, b); g.coefficient != 1 || !g.monomial.empty())
    return floordiv(divide_monomial(divide_coefficients(a, g.coefficient), g.monomial),
                    divide_monomial(divide_coefficients(b, g.coefficient), g.monomial));
  if (terms_of(b).size() == 1 && constant_of(b) == 0) {
    const Split split = split_by_term(a, terms_of(b)[0]);
    if (!(split.quotient == Expr(0))) return split.quotient + floordiv(split.rest, b);
  } else if (const auto quotient = divide_exactly(a, b)) {
    return *quotient;
  }
  return ExprAccess::call(CallKind::floordiv, a, b);
}

Expr mod(const Expr& a, const Expr& b) {
  if (!a.is_valid() || !b.is_valid()) return Expr::invalid();
  if (b.is_constant()) {
    const int64_t k = constant_of(b);
    if (k == 0) return Expr::invalid();
    if (!a.is_constant()) return mod_by_constant(a, k);
    return k == -1 ? Expr(0) : Expr(floor_mod(constant_of(a), k));
  }
  if (a == Expr(0)) return a;
  if (leads_negative(b)) {
    const Expr x = negate(a), y = negate(b);
    return x.is_valid() && y.is_valid() ? negate(mod(x, y)) : Expr::invalid();
  }
  if (const Term g = common_factor(a, b); g.coefficient != 1 || !g.monomial.empty())
    return from_term(g.coefficient, g.monomial) *
           mod(divide_monomial(divide_coefficients(a, g.coefficient), g.monomial),
               divide_monomial(divide_coefficients(b, g.coefficient), g.monomial));
  if (terms_of(b).size() == 1 && constant_of(b) == 0) {
    const Split split = split_by_term(a, terms_of(b)[0]);
    if (!(split.quotient == Expr(0))) return mod(split.rest, b);
  } else if (divide_exactly(a, b)) {
    return Expr(0);
  }
  return ExprAccess::call(CallKind::mod, a, b);
}

// For a positive constant the sum form has the simpler normal form; the other holds for every sign.
Expr ceildiv(const Expr& a, const Expr& b) {
  if (const auto k = b.as_constant(); k && *k > 0)
    if (const Expr raised = a + Expr(*k - 1); raised.is_valid()) return floordiv(raised, b);
  return negate(floordiv(negate(a), b));
}

Expr call_of(CallKind kind, const Expr& a, const Expr& b) {
  switch (kind) {
    case CallKind::floordiv:
      return floordiv(a, b);
    case CallKind::mod:
      return mod(a, b);
    case CallKind::min:
      return min(a, b);
    case CallKind::max:
      return max(a, b);
    case CallKind::broadcast:
      return broadcast_dim(a, b);
  }
  return Expr::invalid();
}

}  // namespace lathe
