// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_mask.h"

#include <algorithm>
#include <cmath>

#include "passes/attention_shapes.h"
#include "passes/causal_mask.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Value;
using Kind = ScoreChange::Kind;

constexpr double kLow = -1e30;  // scores do not change what this or less is added to

// The sum with a mask of zeros and of one low number is that number, or the score.
ScoreChange as_hiding(const ScoreChange& change) {
  const Value* mask = change.value;
  if (const ir::Node* cast = made_by(mask, OpKind::cast); cast && is_floating(cast->input(0)->dtype()))
    mask = cast->input(0);
  const ir::Node* select = change.kind == Kind::add && change.factor > 0 ? made_by(mask, OpKind::select) : nullptr;
  if (!select || select->input(0)->shape() != mask->shape()) return change;
  const std::optional<double> where_true = scalar_of(select->input(1)), where_false = scalar_of(select->input(2));
  if (!where_true || !where_false) return change;
  if (*where_true == 0 && *where_false <= kLow)
    return {Kind::hide_where_false, select->input(0), change.scores, 1, *where_false};
  if (*where_false == 0 && *where_true <= kLow)
    return {Kind::hide_where_true, select->input(0), change.scores, 1, *where_true};
  return change;
}

void add_terms(Value* condition, ElementwiseOp op, std::vector<Value*>& terms) {
  const ir::Node* node = made_by(condition, op);
  const ir::Node* expand = made_by(condition, OpKind::expand);
  if (expand && same_shape(expand->input(0), condition)) return add_terms(expand->input(0), op, terms);
  if (!node) return terms.push_back(condition);
  for (Value* input : node->inputs()) add_terms(input, op, terms);
}

Value* scaled(Rewrite& r, Value* value, double factor) {
  return factor == 1 ? value : r.binary(ElementwiseOp::mul, value, factor);
}

}  // namespace

Value* AttentionMask::build(const std::vector<ScoreChange>& changes, AttentionAttrs& attrs) {
  Value* mask = find(changes);
  if (mask) mask = folded_heads(mask);
  attrs.causal = attrs_.causal;
  attrs.hidden = attrs_.hidden;
  return mask;
}

std::nullptr_t AttentionMask::refuse(std::string reason) {
  if (reason_.empty()) reason_ = std::move(reason);
  return nullptr;
}

// What changes the scores, for scores with all leading dimensions: booleans, or what is added. Null = nothing.
Value* AttentionMask::find(const std::vector<ScoreChange>& scores) {
  std::vector<ScoreChange> changes;
  for (const ScoreChange& change : scores)
    if (change.kind != Kind::multiply) changes.push_back(change);
  // Of several, each adds its low number: a key that two of them hide has less than one that one hides.
  if (changes.size() == 1) {
    changes[0] = as_hiding(changes[0]);
    if (is_causal(changes[0])) return nullptr;
    if (changes[0].kind != Kind::add) return visible_keys(changes[0]);
  }
  Value* mask = nullptr;
  for (const ScoreChange& change : changes) {
    Value* value = aligned(change.value, change.scores);
    if (!value) return nullptr;
    mask = change.kind == Kind::add ? plus(mask, scaled(r_, value, change.factor)) : hiding(mask, value, change);
    if (!mask) return nullptr;
  }
  return mask;
}

// Whether it is all that hides keys. Where the first query sees none, -inf and another low number differ.
bool AttentionMask::is_causal(const ScoreChange& change) {
  double hidden = change.hidden;
  const std::optional<Expr> d = change.kind == Kind::add
                                    ? additive_diagonal_of(change.value, kLow, hidden)
                                    : diagonal_of(change.value, change.kind == Kind::hide_where_true);
  attrs_.causal = d && is_causal(*d) && (std::isinf(hidden) || *d == Expr(0));
  return attrs_.causal;
}

// Where keys are seen, apart from what a causal attention hides anyway.
Value* AttentionMask::visible_keys(const ScoreChange& change) {
  const bool hides_where_true = change.kind == Kind::hide_where_true;
  std::vector<Value*> terms;
  add_terms(change.value, hides_where_true ? ElementwiseOp::logical_or : ElementwiseOp::logical_and, terms);
  std::vector<Value*> others;
  for (Value* term : terms) {
    const std::optional<Expr> d = std::isinf(change.hidden) ? diagonal_of(term, hides_where_true) : std::nullopt;
    if (d && is_causal(*d))
      attrs_.causal = true;
    else if (!all_equal(term, hides_where_true ? 0 : 1))
      others.push_back(term);
  }
  if (others.empty()) return nullptr;
  Value* condition = others[0];
  for (size_t i = 1; i < others.size(); ++i)
    condition =
        r_.binary(hides_where_true ? ElementwiseOp::logical_or : ElementwiseOp::logical_and, condition, others[i]);
  attrs_.hidden = change.hidden;
  condition = aligned(condition, change.scores);
  return condition && hides_where_true ? r_.unary(UnaryOp::logical_not, condition) : condition;
}

Value* AttentionMask::plus(Value* mask, Value* value) {
  if (!mask) return value;
  const DType dtype = size_of(mask->dtype()) >= size_of(value->dtype()) ? mask->dtype() : value->dtype();
  return r_.plus(r_.cast(mask, dtype), r_.cast(value, dtype));
}

// Such a low score that what is added to it does not change it.
Value* AttentionMask::hiding(Value* mask, Value* condition, const ScoreChange& change) {
  if (change.hidden > kLow) return refuse(fmt::format("hidden scores are {} and masks are added", change.hidden));
  const DType dtype = mask && mask->dtype() == DType::bf16 ? DType::bf16 : DType::f32;
  Value* hidden = r_.scalar(change.hidden, dtype);
  Value* others = mask ? r_.cast(mask, dtype) : r_.scalar(0, dtype);
  const bool hides = change.kind == Kind::hide_where_true;
  return hides ? r_.select(condition, hidden, others) : r_.select(condition, others, hidden);
}

// A value that broadcasts to one form of the scores, such that it broadcasts to that with all leading dimensions:
// of a merged first dimension it may have one.
Value* AttentionMask::aligned(Value* value, const Value* scores) {
  const size_t whole = whole_.size() + 2, rank = static_cast<size_t>(scores->rank());
  if (rank == whole || value->rank() <= 2) return value;
  Shape shape = value->shape();
  if (shape.size() == rank && !is_one(shape[0])) {
    if (leading(shape) == leading(scores->shape())) shape = with_rows(whole_, shape);
  } else {
    while (shape.size() > 2 && (shape.size() == rank || is_one(shape[0]))) shape.erase(shape.begin());
    const size_t left = shape.size() - 2;
    const Shape& form = scores->shape();
    if (!std::equal(form.end() - 2 - static_cast<ptrdiff_t>(left), form.end() - 2,
                    whole_.end() - static_cast<ptrdiff_t>(left)))
      return refuse(fmt::format("the mask '{}' is added in another form", value->name()));
  }
  Value* result = reshaped(r_, value, shape);
  return result ? result : refuse(fmt::format("the dimensions of the mask '{}' are not known", value->name()));
}

// The mask with two leading dimensions, or with none.
Value* AttentionMask::folded_heads(Value* mask) {
  if (!mask || whole_.size() == 2 || mask->rank() <= 2) return mask;
  Shape lead = leading(mask->shape());
  while (lead.size() < whole_.size()) lead.insert(lead.begin(), Expr(1));
  if (!std::all_of(lead.begin() + 1, lead.end(), is_one)) {
    std::copy(whole_.begin() + 1, whole_.end(), lead.begin() + 1);
    const std::optional<Dims> others = as_constant(Shape(lead.begin() + 1, lead.end()));
    if (!others)
      return refuse(fmt::format("the mask '{}' is repeated along dimensions that are not known", mask->name()));
    Ints dims = {1};
    dims.insert(dims.end(), others->begin(), others->end());
    dims.insert(dims.end(), 2, 1);
    mask = r_.expand(mask, r_.ints(dims));
  }
  Value* result = reshaped(r_, mask, with_rows(folded(lead), mask->shape()));
  return result ? result : refuse(fmt::format("the dimensions of the mask '{}' are not known", mask->name()));
}

}  // namespace lathe
