// SPDX-License-Identifier: Apache-2.0
#include "passes/hidden_scores.h"

#include "passes/match.h"
#include "passes/weights_math.h"

namespace lathe {
namespace {

using ir::Value;
using Kind = ScoreChange::Kind;

// By a condition that is not the negation of another.
ScoreChange by_positive(ScoreChange change) {
  while (const ir::Node* negation = made_by(change.value, UnaryOp::logical_not)) {
    change.kind = change.kind == Kind::hide_where_true ? Kind::hide_where_false : Kind::hide_where_true;
    change.value = negation->input(0);
  }
  return change;
}

}  // namespace

std::optional<Hiding> hiding_of(const ScoreChange& change, double low) {
  if (change.kind != Kind::add) return Hiding{by_positive(change)};
  const Value* mask = change.value;
  if (const ir::Node* cast = made_by(mask, OpKind::cast); cast && is_floating(cast->input(0)->dtype()))
    mask = cast->input(0);
  const ir::Node* select = made_by(mask, OpKind::select);
  if (!select) return std::nullopt;
  for (const size_t shown : {1, 2}) {
    const std::optional<double> number = scalar_of(select->input(3 - shown));
    const double hidden = number ? rounded_to(change.value->dtype(), *number) * change.factor : 0;
    Value* other = select->input(shown);
    const bool adds_nothing = scalar_of(other) == 0;
    if (!(hidden <= low) || (!adds_nothing && mask != change.value)) continue;
    const Kind kind = shown == 1 ? Kind::hide_where_false : Kind::hide_where_true;
    return Hiding{by_positive({kind, select->input(0), change.scores, 1, hidden}), adds_nothing ? nullptr : other};
  }
  return std::nullopt;
}

ScoreChange as_hiding(const ScoreChange& change) {
  const std::optional<Hiding> hiding = hiding_of(change, kLow);
  return hiding && !hiding->added && same_shape(hiding->change.value, change.value) ? hiding->change : change;
}

void add_terms(Value* whole, ElementwiseOp op, std::vector<Value*>& terms) {
  const ir::Node* node = made_by(whole, op);
  const ir::Node* expand = made_by(whole, OpKind::expand);
  if (expand && same_shape(expand->input(0), whole)) return add_terms(expand->input(0), op, terms);
  constexpr size_t kMostTerms = 64;  // as sums that double each time have too many
  if (!node || terms.size() >= kMostTerms) return terms.push_back(whole);
  for (Value* input : node->inputs()) add_terms(input, op, terms);
}

}  // namespace lathe
