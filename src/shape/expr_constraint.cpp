// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shape/constraint.h"
#include "shape/expr_poly.h"

namespace lathe {
namespace {

bool excludes_one(Range range) { return range.min > 1 || range.max < 1; }
bool is_one(Range range) { return range.min == 1 && range.max == 1; }

std::optional<bool> decide_equal(const Expr& a, const Expr& b, std::span<const Range> ranges) {
  const Range difference = (a - b).range(ranges);
  if (difference == Range{0, 0}) return true;
  if (difference.min > 0 || difference.max < 0) return false;
  return std::nullopt;
}

// Whether the ranges keep every factor of the monomial away from 0, so that one may divide by it.
bool is_never_zero(const Monomial& monomial, std::span<const Range> ranges) {
  return std::all_of(monomial.begin(), monomial.end(), [&](const Factor& factor) {
    const Range range = from_term(1, {factor}).range(ranges);
    return range.min > 0 || range.max < 0;
  });
}

// The terms of a - b without the factors that all of them have and that are never 0: none where a = b is no equation,
// or has a number in it.
std::vector<Term> cancelled(const Constraint& equation, std::span<const Range> ranges) {
  if (equation.relation != Relation::equal) return {};
  const Expr difference = equation.a - equation.b;
  if (!difference.is_valid() || difference.is_constant() || ExprAccess::constant(difference) != 0) return {};
  std::vector<Term> terms = ExprAccess::terms(difference);
  const Monomial first = terms[0].monomial;
  for (const Factor& factor : first) {
    const Monomial one = {{factor.atom, 1}};
    const auto has_it = [&](const Term& term) { return divide(term.monomial, one).has_value(); };
    for (uint32_t i = 0; i < factor.power && is_never_zero(one, ranges) && std::ranges::all_of(terms, has_it); ++i)
      for (Term& term : terms) term.monomial = *divide(term.monomial, one);
  }
  return terms;
}

// Two products that are equal.
struct Sides {
  Monomial a, b;
};
std::optional<Sides> sides_of(const Constraint& equation, std::span<const Range> ranges) {
  const std::vector<Term> terms = cancelled(equation, ranges);
  if (terms.size() != 2 || terms[0].coefficient != -terms[1].coefficient) return std::nullopt;
  return Sides{terms[0].monomial, terms[1].monomial};
}

std::optional<SymbolId> as_symbol(const Monomial& monomial) {
  const bool is_symbol = monomial.size() == 1 && monomial[0].power == 1 && !monomial[0].atom.call;
  return is_symbol ? std::optional(monomial[0].atom.symbol) : std::nullopt;
}

// The symbols that a factor broadcasts, all at least 1; none where it is something else.
std::vector<SymbolId> broadcast_symbols(const Factor& factor, std::span<const Range> ranges) {
  const Call* call = factor.atom.call.get();
  if (!call || factor.power != 1 || call->kind != CallKind::broadcast) return {};
  std::vector<SymbolId> symbols;
  for (const Expr& operand : operands_of(*call)) {
    const std::optional<SymbolId> symbol = operand.as_symbol();
    if (!symbol || operand.range(ranges).min < 1) return {};
    symbols.push_back(*symbol);
  }
  return symbols;
}

// That the others of the symbols expand to the one that they broadcast to.
void add_expansions(const std::vector<SymbolId>& symbols, SymbolId to, std::vector<Constraint>& found) {
  for (const SymbolId id : symbols)
    if (id != to) found.push_back({Relation::expand, Expr::symbol(id), Expr::symbol(to), {}});
}

// Each factor of `larger` is a factor of `smaller`, or broadcasts one; nothing is left then.
std::vector<Constraint> expansions_of(const Monomial& larger, Monomial smaller, std::span<const Range> ranges) {
  std::vector<Constraint> found;
  for (const Factor& factor : larger) {
    if (const std::optional<Monomial> rest = divide(smaller, {factor})) {
      if (!is_never_zero({factor}, ranges)) return {};  // it makes both sides 0, whatever the others are
      smaller = *rest;
      continue;
    }
    const std::vector<SymbolId> symbols = broadcast_symbols(factor, ranges);
    const auto without = [&](SymbolId id) { return divide(smaller, {Factor{Atom{id, nullptr}, 1}}); };
    const auto chosen = std::ranges::find_if(symbols, [&](SymbolId id) { return without(id).has_value(); });
    if (chosen == symbols.end()) return {};
    smaller = *without(*chosen);
    add_expansions(symbols, *chosen, found);
  }
  return smaller.empty() ? found : std::vector<Constraint>();
}

// Of broadcast(s, t) - s <= 0.
void add_expansions_of_excess(const Expr& excess, std::span<const Range> ranges, std::vector<Constraint>& found) {
  for (const Term& term : ExprAccess::terms(excess)) {
    if (term.coefficient != 1 || term.monomial.size() != 1) continue;
    const std::vector<SymbolId> symbols = broadcast_symbols(term.monomial[0], ranges);
    for (const SymbolId id : symbols)
      if (excess == from_term(1, term.monomial) - Expr::symbol(id)) add_expansions(symbols, id, found);
  }
}

// Of max(s, broadcast(s, t)) = s, which is written with max(d, 0), d being either side less the other: it tells that d
// is at most 0, or at least.
std::vector<Constraint> expansions_of_max(const Constraint& equation, std::span<const Range> ranges) {
  Expr sum = 0;
  const std::vector<Term> terms = cancelled(equation, ranges);
  for (const Term& term : terms) sum += from_term(term.coefficient, term.monomial);
  std::vector<Constraint> found;
  for (const Term& term : terms) {
    const Call* call = term.monomial.size() == 1 ? term.monomial[0].atom.call.get() : nullptr;
    if (!call || call->kind != CallKind::max || !(call->b == Expr(0)) || std::abs(term.coefficient) != 1) continue;
    const Expr rest = sum - from_term(term.coefficient, term.monomial);
    if (rest == Expr(0)) add_expansions_of_excess(call->a, ranges, found);
    if (rest == Expr(-term.coefficient) * call->a) add_expansions_of_excess(Expr(0) - call->a, ranges, found);
  }
  return found;
}

}  // namespace

std::vector<SymbolId> symbols_of(const Constraint& constraint) {
  std::vector<SymbolId> used;
  constraint.a.collect_symbols(used);
  constraint.b.collect_symbols(used);
  return used;
}

Constraint substituted(Constraint constraint, std::span<const Expr> replacements) {
  constraint.a = constraint.a.substitute(replacements);
  constraint.b = constraint.b.substitute(replacements);
  return constraint;
}

bool holds(Relation relation, int64_t a, int64_t b) {
  switch (relation) {
    case Relation::equal:
      return a == b;
    case Relation::broadcast:
      return a == b || a == 1 || b == 1;
    case Relation::expand:
      return a == b || a == 1;
    case Relation::at_most:
      return a <= b;
  }
  return false;
}

std::optional<bool> decide(const Constraint& constraint, std::span<const Range> ranges) {
  const Expr &a = constraint.a, &b = constraint.b;
  if (constraint.relation == Relation::at_most) {
    const Range difference = (b - a).range(ranges);
    if (difference.min >= 0) return true;
    if (difference.max < 0) return false;
    return std::nullopt;
  }
  const std::optional<bool> equal = decide_equal(a, b, ranges);
  if (equal == true || constraint.relation == Relation::equal) return equal;
  if (constraint.relation == Relation::expand && is_broadcast_of(b, a)) return true;
  const Range x = a.range(ranges), y = b.range(ranges);
  const bool may_be_one = constraint.relation == Relation::broadcast;
  if (is_one(x) || (may_be_one && is_one(y))) return true;
  if (equal == false && excludes_one(x) && (!may_be_one || excludes_one(y))) return false;
  return std::nullopt;
}

Constraint as_equation(Constraint constraint, std::span<const Range> ranges) {
  const bool stretches = constraint.relation == Relation::broadcast || constraint.relation == Relation::expand;
  if (!stretches) return constraint;
  const bool a_differs = excludes_one(constraint.a.range(ranges)), b_differs = excludes_one(constraint.b.range(ranges));
  const bool may_be_one = constraint.relation == Relation::broadcast;
  if (a_differs && (b_differs || !may_be_one)) {
    constraint.relation = Relation::equal;
  } else if (decide_equal(constraint.a, constraint.b, ranges) == false) {  // then one of them is 1
    if (b_differs || !may_be_one)
      constraint = {Relation::equal, constraint.a, 1, std::move(constraint.where)};
    else if (a_differs)
      constraint = {Relation::equal, constraint.b, 1, std::move(constraint.where)};
  }
  return constraint;
}

std::optional<Solution> solve(const Constraint& equation, std::span<const Range> ranges) {
  if (equation.relation != Relation::equal) return std::nullopt;
  const Expr difference = equation.a - equation.b;
  if (!difference.is_valid()) return std::nullopt;
  std::vector<Term> terms = ExprAccess::terms(difference);
  int64_t constant = ExprAccess::constant(difference);
  if (terms.size() == 2 && constant == 0) {  // c * m * s + d * m: cancel m
    Monomial& high = terms[0].monomial;
    const std::optional<Monomial> quotient = divide(high, terms[1].monomial);
    if (!quotient || !is_never_zero(terms[1].monomial, ranges)) return std::nullopt;
    high = *quotient;
    constant = terms[1].coefficient;
    terms.pop_back();
  }
  if (terms.size() != 1 || terms[0].monomial.size() != 1) return std::nullopt;
  const Factor& factor = terms[0].monomial[0];
  const int64_t coefficient = terms[0].coefficient;
  if (factor.power != 1 || factor.atom.call || constant == INT64_MIN || constant % coefficient != 0)
    return std::nullopt;
  return Solution{factor.atom.symbol, -(constant / coefficient)};
}

std::optional<std::pair<SymbolId, SymbolId>> equal_symbols(const Constraint& equation, std::span<const Range> ranges) {
  const std::optional<Sides> sides = sides_of(equation, ranges);
  const std::optional<SymbolId> a = sides ? as_symbol(sides->a) : std::nullopt;
  const std::optional<SymbolId> b = sides ? as_symbol(sides->b) : std::nullopt;
  return a && b ? std::optional(std::minmax(*a, *b)) : std::nullopt;
}

std::vector<Constraint> expansions_of(const Constraint& equation, std::span<const Range> ranges) {
  std::vector<Constraint> found = expansions_of_max(equation, ranges);
  const std::optional<Sides> sides = sides_of(equation, ranges);
  if (sides && found.empty()) found = expansions_of(sides->a, sides->b, ranges);
  if (sides && found.empty()) found = expansions_of(sides->b, sides->a, ranges);
  for (Constraint& constraint : found) constraint.where = equation.where;
  return found;
}

std::string to_string(const Constraint& constraint, std::span<const std::string> names) {
  const std::string a = constraint.a.to_string(names), b = constraint.b.to_string(names);
  switch (constraint.relation) {
    case Relation::equal:
      return fmt::format("{} = {}", a, b);
    case Relation::broadcast:
      return fmt::format("{} = {}, or one of them 1", a, b);
    case Relation::expand:
      return fmt::format("{} = {} or 1", a, b);
    case Relation::at_most:
      return fmt::format("{} <= {}", a, b);
  }
  return {};
}

}  // namespace lathe
