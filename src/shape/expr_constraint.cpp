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

}  // namespace

std::vector<SymbolId> symbols_of(const Constraint& constraint) {
  std::vector<SymbolId> used;
  constraint.a.collect_symbols(used);
  constraint.b.collect_symbols(used);
  return used;
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
