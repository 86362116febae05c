// SPDX-License-Identifier: Apache-2.0
// Simplification of min and max. Of two operands only the positive part of their difference is kept:
//   max(a, b) = b + max(a - b, 0)      min(a, b) = a - max(a - b, 0)      max(-d, 0) = max(d, 0) - d
// so that what a roll cuts off and puts back, min(n, 3) + max(n - 3, 0), is n again. Of more operands a chain is kept,
// flattened, without those that another one beats, and sorted.
#include <algorithm>
#include <array>

#include "shape/expr_poly.h"

namespace lathe {
namespace {

CallKind opposite(CallKind kind) { return kind == CallKind::min ? CallKind::max : CallKind::min; }

// A term c * max(x, y) makes a sum the max of two sums where c > 0, and their min where c < 0.
std::optional<CallKind> kind_of(const Term& term) {
  if (term.monomial.size() != 1 || term.monomial[0].power != 1) return std::nullopt;
  const Call* call = term.monomial[0].atom.call.get();
  if (!call || (call->kind != CallKind::min && call->kind != CallKind::max)) return std::nullopt;
  return term.coefficient > 0 ? call->kind : opposite(call->kind);
}

// The only term that makes e a min or max of sums; null when there is none, or more.
const Term* only_choice(const Expr& e, CallKind kind) {
  const Term* found = nullptr;
  for (const Term& term : ExprAccess::terms(e)) {
    if (kind_of(term) != kind) continue;
    if (found) return nullptr;
    found = &term;
  }
  return found;
}

void flatten(const Expr& e, CallKind kind, std::vector<Expr>& out) {
  const std::vector<Expr> choices = choices_of(e, kind);
  if (choices.empty()) out.push_back(e);
  for (const Expr& choice : choices) flatten(choice, kind, out);
}

// Adds e to the operands of a min or max, unless one of them settles it.
void insert(std::vector<Expr>& operands, const Expr& e, CallKind kind) {
  for (auto it = operands.begin(); it != operands.end();) {
    const std::optional<int64_t> x = e.as_constant(), y = it->as_constant();
    const Range difference = (e - *it).range({});  // unknown where it overflows
    const bool below = x && y ? *x <= *y : difference.max <= 0, above = x && y ? *x >= *y : difference.min >= 0;
    if (kind == CallKind::min ? above : below) return;
    if (kind == CallKind::min ? below : above)
      it = operands.erase(it);  // e wins; it may beat others too
    else
      ++it;
  }
  operands.push_back(e);
}

bool leads_negative(const Expr& e) { return ExprAccess::terms(e)[0].coefficient < 0; }

// max(d, 0), where d is not known to have one sign.
Expr positive_part(const Expr& d) {
  if (leads_negative(d)) {
    const Expr negated = Expr(0) - d;
    return negated.is_valid() ? max(negated, 0) + d : Expr::invalid();
  }
  if (const int64_t factor = content(d, ExprAccess::constant(d)); factor > 1)
    return Expr(factor) * max(divide_coefficients(d, factor), 0);
  return ExprAccess::call(CallKind::max, d, 0);
}

Expr combine_two(const Expr& a, const Expr& b, CallKind kind) {
  const Expr d = a - b;
  const Expr positive = b == Expr(0) && kind == CallKind::max ? positive_part(d) : max(d, 0);
  const Expr result = kind == CallKind::max ? b + positive : a - positive;
  return result.is_valid() ? result : ExprAccess::call(kind, a, b);  // what overflows stays as it is
}

}  // namespace

Expr combine(std::span<const Expr> all, CallKind kind) {
  std::vector<Expr> flat, operands;
  for (const Expr& e : all) {
    if (!e.is_valid()) return e;
    flatten(e, kind, flat);
  }
  for (const Expr& e : flat) insert(operands, e, kind);
  std::sort(operands.begin(), operands.end(), [](const Expr& x, const Expr& y) { return compare(x, y) < 0; });
  if (operands.size() == 2) return combine_two(operands[0], operands[1], kind);
  Expr result = operands[0];
  for (size_t i = 1; i < operands.size() && result.is_valid(); ++i)
    result = ExprAccess::call(kind, result, operands[i]);
  return result;
}

std::vector<Expr> operands_of(const Call& call) {
  std::vector<Expr> operands{call.b};
  const Expr* rest = &call.a;
  const auto inner = [&]() -> const Call* {
    const std::vector<Term>& terms = ExprAccess::terms(*rest);
    if (ExprAccess::constant(*rest) != 0 || terms.size() != 1 || terms[0].coefficient != 1) return nullptr;
    return kind_of(terms[0]) == call.kind ? terms[0].monomial[0].atom.call.get() : nullptr;
  };
  for (const Call* next = inner(); next; next = inner()) {
    operands.push_back(next->b);
    rest = &next->a;
  }
  operands.push_back(*rest);
  std::reverse(operands.begin(), operands.end());
  return operands;
}

std::vector<Expr> choices_of(const Expr& e, CallKind kind) {
  const Term* term = only_choice(e, kind);
  if (!term) return {};
  const Expr rest = e - from_term(term->coefficient, term->monomial);
  std::vector<Expr> choices = operands_of(*term->monomial[0].atom.call);
  for (Expr& choice : choices) {
    choice = rest + choice * Expr(term->coefficient);
    if (!choice.is_valid()) return {};
  }
  return choices;
}

Expr min(const Expr& a, const Expr& b) { return combine(std::array{a, b}, CallKind::min); }
Expr max(const Expr& a, const Expr& b) { return combine(std::array{a, b}, CallKind::max); }

}  // namespace lathe
