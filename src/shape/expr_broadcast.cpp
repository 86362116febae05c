// SPDX-License-Identifier: Apache-2.0
// Simplification of broadcasts. Chains are flattened; operands that are 1 or repeat another one are dropped; if an
// operand is another number, it is the result, as the rest can only be that number or 1; what is cut to a number is
// dropped beside the uncut; what remains is sorted. So a dimension that layer after layer is broadcast with the same
// dimensions stays as it is.
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

// Whether e is min(whole, c) for a number c of at least 1. Where it broadcasts with `whole`, that is the result: both
// are equal, or `whole` is 1 and so is e, or e is 1 and c with it, for whatever `whole` is. A table of c positions, of
// which a network takes as many as its input is long, is such an operand.
bool is_cut(const Expr& e, const Expr& whole) {
  const std::vector<Expr> choices = choices_of(e, CallKind::min);
  return std::find(choices.begin(), choices.end(), whole) != choices.end() &&
         std::all_of(choices.begin(), choices.end(), [&](const Expr& choice) {
           return choice == whole || (choice.is_constant() && ExprAccess::constant(choice) >= 1);
         });
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
  for (size_t i = operands.size(); i-- > 0;)
    if (std::any_of(operands.begin(), operands.end(),
                    [&](const Expr& whole) { return !(whole == operands[i]) && is_cut(operands[i], whole); }))
      operands.erase(operands.begin() + static_cast<ptrdiff_t>(i));
  if (operands.empty()) return 1;
  Expr result = operands[0];
  for (size_t i = 1; i < operands.size() && result.is_valid(); ++i)
    result = ExprAccess::call(CallKind::broadcast, result, operands[i]);
  return result;
}

bool is_broadcast_of(const Expr& to, const Expr& dim) {
  std::vector<Expr> operands;
  flatten(to, operands);
  return operands.size() > 1 && std::find(operands.begin(), operands.end(), dim) != operands.end();
}

Expr broadcast_stride(const Expr& dim, const Expr& to, const Expr& stride) {
  if (dim == Expr(1)) return 0;
  if (dim == to || dim.is_constant()) return stride;
  return stride * min(dim - 1, 1);
}

}  // namespace lathe
