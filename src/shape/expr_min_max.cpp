// SPDX-License-Identifier: Apache-2.0
// Simplification of min and max: chains are flattened, operands that differ by a constant are decided, the rest is
// sorted, so that associativity, commutativity and idempotence are proven by equality.
#include <algorithm>

#include "shape/expr_poly.h"

namespace lathe {
namespace {

// The call when e is exactly one min or max atom.
const Call* as_call(const Expr& e, ExprKind kind) {
  if (ExprAccess::constant(e) != 0 || ExprAccess::terms(e).size() != 1) return nullptr;
  const Term& term = ExprAccess::terms(e)[0];
  if (term.coefficient != 1 || term.monomial.size() != 1 || term.monomial[0].power != 1) return nullptr;
  const Call* call = term.monomial[0].atom.call.get();
  return call && call->kind == kind ? call : nullptr;
}

void flatten(const Expr& e, ExprKind kind, std::vector<Expr>& out) {
  if (const Call* call = as_call(e, kind)) {
    flatten(call->a, kind, out);
    flatten(call->b, kind, out);
  } else {
    out.push_back(e);
  }
}

// Adds e to the operands of a min or max, unless one of them settles it.
void insert(std::vector<Expr>& operands, const Expr& e, ExprKind kind) {
  for (auto it = operands.begin(); it != operands.end();) {
    const std::optional<int64_t> difference = (e - *it).as_constant();
    if (!difference) {
      ++it;
    } else if ((*difference < 0) == (kind == ExprKind::min) && *difference != 0) {
      it = operands.erase(it);  // e wins; it may beat others too
    } else {
      return;
    }
  }
  operands.push_back(e);
}

Expr combine(const Expr& a, const Expr& b, ExprKind kind) {
  if (!a.is_valid() || !b.is_valid()) return Expr::invalid();
  if (a.is_constant() && b.is_constant())
    return kind == ExprKind::min ? Expr(std::min(*a.as_constant(), *b.as_constant()))
                                 : Expr(std::max(*a.as_constant(), *b.as_constant()));
  std::vector<Expr> flat, operands;
  flatten(a, kind, flat);
  flatten(b, kind, flat);
  for (const Expr& e : flat) insert(operands, e, kind);
  std::sort(operands.begin(), operands.end(), [](const Expr& x, const Expr& y) { return compare(x, y) < 0; });
  Expr result = operands[0];
  for (size_t i = 1; i < operands.size() && result.is_valid(); ++i)
    result = ExprAccess::call(kind, result, operands[i]);
  return result;
}

}  // namespace

Expr min(const Expr& a, const Expr& b) { return combine(a, b, ExprKind::min); }
Expr max(const Expr& a, const Expr& b) { return combine(a, b, ExprKind::max); }

}  // namespace lathe
