// SPDX-License-Identifier: Apache-2.0
// Proofs and simplification by what is known of symbols. The rules, for any integers with b > 0 and g > 0:
//   floordiv(x, b) = 0, mod(x, b) = x                    where 0 <= x < b
//   floordiv(q*b + r, b) = q, mod(q*b + r, b) = r        where 0 <= r < b
//   floordiv(g*a + r, g*b) = floordiv(a, b)              where 0 <= r < g
//   mod(g*a + r, g*b)      = g * mod(a, b) + r           where 0 <= r < g
//   min(x, y) = x, max(x, y) = y                         where x <= y
#include <algorithm>
#include <numeric>

#include "shape/expr_poly.h"
#include "shape/facts.h"

namespace lathe {
namespace {

bool contains(const Expr& e, SymbolId symbol) {
  std::vector<SymbolId> used;
  e.collect_symbols(used);
  return std::binary_search(used.begin(), used.end(), symbol);
}

Expr with(const Expr& e, SymbolId symbol, const Expr& value) {
  std::vector<Expr> replacements;
  for (SymbolId id = 0; id < symbol; ++id) replacements.push_back(Expr::symbol(id));
  replacements.push_back(value);
  return e.substitute(replacements);
}

// x = b * quotient + rest, by long division of polynomials: terms that b's leading term does not divide stay in the
// rest.
struct Divided {
  Expr quotient, rest;
};

std::optional<Divided> divided(const Expr& x, const Expr& b) {
  if (b.is_constant()) return std::nullopt;
  const Term& lead = ExprAccess::terms(b)[0];
  constexpr int kMaxSteps = 64;
  Divided result{0, x};
  for (int step = 0; step < kMaxSteps; ++step) {
    std::optional<Expr> part;
    for (const Term& term : ExprAccess::terms(result.rest)) {
      std::optional<Monomial> monomial = divide(term.monomial, lead.monomial);
      if (!monomial || term.coefficient % lead.coefficient != 0) continue;
      part = from_term(term.coefficient / lead.coefficient, *std::move(monomial));
      break;
    }
    if (!part) return result;
    result.quotient += *part;
    result.rest = result.rest - *part * b;
    if (!result.rest.is_valid()) return std::nullopt;
  }
  return std::nullopt;
}

// x = g * multiple + rest, and b = g * divisor.
struct Factored {
  Expr g, multiple, rest, divisor;
};

// By the greatest g that divides b and this term of x; nullopt when that is 1.
std::optional<Factored> factored_by(const Term& term, const Expr& x, const Expr& b) {
  Monomial common;
  int64_t coefficient = content(b, ExprAccess::constant(b));
  coefficient = std::gcd(coefficient, term.coefficient);
  for (const Factor& factor : term.monomial) {
    const Monomial one = {factor};
    const bool divides_all = ExprAccess::constant(b) == 0 &&
                             std::all_of(ExprAccess::terms(b).begin(), ExprAccess::terms(b).end(),
                                         [&](const Term& each) { return divide(each.monomial, one).has_value(); });
    if (divides_all) common = multiply(common, one);
  }
  const Expr g = from_term(coefficient, common);
  if (g == Expr(1) || g == Expr(0)) return std::nullopt;
  Factored result{g, 0, x, floordiv(b, g)};
  for (const Term& each : ExprAccess::terms(x)) {
    const Expr alone = from_term(each.coefficient, each.monomial), part = floordiv(alone, g);
    if (part * g == alone) result.multiple += part;
  }
  const Expr constant = floordiv(Expr(ExprAccess::constant(x)), g);
  if (constant * g == Expr(ExprAccess::constant(x))) result.multiple += constant;
  result.rest = x - result.multiple * g;
  if (result.divisor * g != b || !result.rest.is_valid()) return std::nullopt;
  return result;
}

// Calls `resolve` with every call of the sum, whose operands are simplified, and puts in what it gives.
template <class Resolve>
Expr rebuilt(const Expr& e, const Resolve& resolve) {
  Expr sum = ExprAccess::constant(e);
  for (const Term& term : ExprAccess::terms(e)) {
    Expr product = term.coefficient;
    for (const Factor& factor : term.monomial) {
      const Expr alone = from_term(1, {{factor.atom, 1}});
      const Expr base = factor.atom.call ? resolve(*factor.atom.call, alone) : alone;
      for (uint32_t i = 0; i < factor.power; ++i) product *= base;
    }
    sum += product;
  }
  return sum;
}

}  // namespace

Expr Facts::add_index(Expr extent) {
  const auto index = static_cast<SymbolId>(ranges_.size());
  const int64_t most = range(extent).max;
  ranges_.push_back({0, most == Range::kUnbounded ? most : std::max<int64_t>(most - 1, 0)});
  indices_.push_back({index, std::move(extent)});
  return Expr::symbol(index);
}

bool Facts::is_nonnegative(const Expr& e) const {
  // Extents have a sign, even where their symbols have none that is known: without any point there is nothing to prove.
  const auto sign_of = [&](Expr slope) {
    for (const Index& index : indices_) {
      if (index.extent.is_constant()) continue;
      for (Expr rest; !slope.is_constant() && (rest = floordiv(slope, index.extent)) * index.extent == slope;)
        slope = rest;
    }
    return range(slope);
  };
  Expr least = e;
  for (auto index = indices_.rbegin(); index != indices_.rend() && least.is_valid(); ++index) {
    if (!contains(least, index->symbol)) continue;
    const Expr slope = with(least, index->symbol, Expr::symbol(index->symbol) + Expr(1)) - least;
    if (!slope.is_valid() || contains(slope, index->symbol)) continue;  // not linear: its range must do
    const Range sign = sign_of(slope);
    if (sign.min >= 0)
      least = with(least, index->symbol, 0);
    else if (sign.max <= 0)
      least = with(least, index->symbol, index->extent - Expr(1));
  }
  return least.is_valid() && range(least).min >= 0;
}

Expr Facts::simplify(const Expr& e) const {
  if (!e.is_valid()) return e;
  const auto resolve = [&](const Call& call, const Expr& alone) {
    const Expr &x = call.a, &b = call.b;
    if (call.kind == CallKind::min || call.kind == CallKind::max) {
      if (is_at_most(x, b)) return call.kind == CallKind::min ? x : b;
      if (is_at_most(b, x)) return call.kind == CallKind::min ? b : x;
      return alone;
    }
    if (call.kind == CallKind::broadcast) return alone;
    const bool is_quotient = call.kind == CallKind::floordiv;
    if (is_within(x, b)) return is_quotient ? Expr(0) : x;
    if (const std::optional<Divided> result = divided(x, b); result && is_within(result->rest, b))
      return is_quotient ? result->quotient : result->rest;
    if (range(b).min < 0) return alone;  // there is no value where it is 0; a rest that is within it is proof enough
    for (const Term& term : ExprAccess::terms(x)) {
      const std::optional<Factored> factored = factored_by(term, x, b);
      if (!factored || !is_within(factored->rest, factored->g) ||
          (factored->rest == Expr(0) && factored->multiple == x))
        continue;
      const Expr smaller = simplify(call_of(call.kind, factored->multiple, factored->divisor));
      return is_quotient ? smaller : factored->g * smaller + factored->rest;
    }
    return alone;
  };
  const Expr inner =
      rebuilt(e, [&](const Call& call, const Expr&) { return call_of(call.kind, simplify(call.a), simplify(call.b)); });
  return rebuilt(inner, resolve);
}

std::optional<Division> first_division(const Expr& e, SymbolId first) {
  const auto concerns = [&](const Expr& part) {
    std::vector<SymbolId> used;
    part.collect_symbols(used);
    return !used.empty() && used.back() >= first;
  };
  for (const Term& term : ExprAccess::terms(e))
    for (const Factor& factor : term.monomial) {
      const Call* call = factor.atom.call.get();
      if (!call) continue;
      if (std::optional<Division> inner = first_division(call->a, first)) return inner;
      if (std::optional<Division> inner = first_division(call->b, first)) return inner;
      if ((call->kind == CallKind::floordiv || call->kind == CallKind::mod) && (concerns(call->a) || concerns(call->b)))
        return Division{call->a, call->b};
    }
  return std::nullopt;
}

}  // namespace lathe
