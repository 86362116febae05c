// SPDX-License-Identifier: Apache-2.0
// Simplification of broadcasts. Chains are flattened; operands that are 1 or repeat another one are dropped; if an
// operand is another number, it is the result, as the rest can only be that number or 1; what remains is sorted. So a
// dimension that layer after layer is broadcast with the same dimensions stays as it is.
#include <algorithm>

#include "shape/expr_poly.h"

namespace lathe {
namespace {

void flatten(const Expr& e, std::vector<Expr>& out) {
  const std::vector<Term>& terms = ExprAccess::terms(e);
  const bool lone = ExprAccess::constant(e) == 0 && terms.size() == 1 && terms[0].coefficient == 1 &&
                    terms[0].monomial.size() == 1 && terms[0].monomial[0].power == 1;
  const Call* call = lone ? terms[0].monomial[0].atom.call.get() : nullptr;
  if (!call || call->kind != CallKind::broadcast) return out.push_back(e);
  flatten(call->a, out);
  flatten(call->b, out);
}

}  // namespace

Expr broadcast_dim(const Expr& a, const Expr& b) {
  if (!a.is_valid() || !b.is_valid()) return Expr::invalid();
  std::vector<Expr> operands;
  flatten(a, operands);
  flatten(b, operands);
  std::erase(operands, Expr(1));
  for (const Expr& operand : operands)
    if (operand.is_constant()) return operand;
  std::sort(operands.begin(), operands.end(), [](const Expr& x, const Expr& y) { return compare(x, y) < 0; });
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  if (operands.empty()) return 1;
  Expr result = operands[0];
  for (size_t i = 1; i < operands.size() && result.is_valid(); ++i)
    result = ExprAccess::call(CallKind::broadcast, result, operands[i]);
  return result;
}

}  // namespace lathe
