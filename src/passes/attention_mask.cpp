// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/attention_shapes.h"
#include "passes/causal_mask.h"
#include "passes/magnitude.h"
#include "passes/match.h"
#include "passes/weights_math.h"

namespace lathe {
namespace {

using ir::Value;
using Kind = ScoreChange::Kind;

constexpr double kLow = -1e30;  // scores do not change what this or less is added to
constexpr double kLowestHalf = -65504;
constexpr double kNothing = -std::numeric_limits<double>::infinity();

// A change that hides keys, and what it adds to the scores of the others; null = nothing.
struct Hiding {
  ScoreChange change;
  Value* added = nullptr;
};

// A sum with select(c, x, low) is select(c, score + x, low). nullopt where the change hides no keys, or by a number
// above `low`.
std::optional<Hiding> hiding_of(const ScoreChange& change, double low) {
  if (change.kind != Kind::add) return Hiding{change};
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
    return Hiding{{kind, select->input(0), change.scores, 1, hidden}, adds_nothing ? nullptr : other};
  }
  return std::nullopt;
}

ScoreChange as_hiding(const ScoreChange& change) {
  const std::optional<Hiding> hiding = hiding_of(change, kLow);
  return hiding && !hiding->added && same_shape(hiding->change.value, change.value) ? hiding->change : change;
}

void add_terms(Value* condition, ElementwiseOp op, std::vector<Value*>& terms) {
  const ir::Node* node = made_by(condition, op);
  const ir::Node* expand = made_by(condition, OpKind::expand);
  if (expand && same_shape(expand->input(0), condition)) return add_terms(expand->input(0), op, terms);
  if (!node) return terms.push_back(condition);
  for (Value* input : node->inputs()) add_terms(input, op, terms);
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
  take_causal(changes);
  // Several masks stay additive: a key that two of them hide has a lower score than one that one hides.
  if (changes.size() == 1) {
    changes[0] = as_hiding(changes[0]);
    if (changes[0].kind != Kind::add) return visible_keys(changes[0]);
  }
  Value* mask = nullptr;
  for (const ScoreChange& change : changes) {
    Value* value = aligned(change.value, change.scores);
    if (!value) return nullptr;
    mask = change.kind == Kind::add ? plus(mask, r_.scaled(value, change.factor)) : hiding(mask, value, change);
    if (!mask) return nullptr;
  }
  return mask;
}

// Leaves later keys to the kernel, which gives them -inf.
void AttentionMask::take_causal(std::vector<ScoreChange>& changes) {
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::optional<Causal> causal = causal_part(changes[i]);
    if (!causal || !may_be_infinite(*causal, changes, i)) continue;
    attrs_.causal = true;
    if (causal->added)
      changes[i] = {Kind::add, causal->added, changes[i].scores, changes[i].factor};
    else if (causal->is_whole)
      changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(i--));  // the first wraps, and comes back to 0
  }
}

// Whether later keys, which one of the changes hides, may have -inf: nothing that is added to that changes it. A finite
// low number is as good where each query sees a key that nothing else brings near that number.
bool AttentionMask::may_be_infinite(const Causal& causal, const std::vector<ScoreChange>& changes, size_t at) const {
  if (std::any_of(changes.begin() + static_cast<std::ptrdiff_t>(at) + 1, changes.end(),
                  [](const ScoreChange& later) { return later.kind != Kind::add && later.hidden != kNothing; }))
    return false;
  if (causal.number == kNothing) return true;
  const std::vector<Range>& ranges = r_.graph().symbol_ranges();
  if (!(causal.number <= kLowestHalf) || !((keys_ - queries_).range(ranges).min >= 0)) return false;
  const auto distance = [&](const ScoreChange& change, const Value* added) {
    return change.kind == Kind::add ? std::fabs(change.factor) * largest_magnitude(added) : HUGE_VAL;
  };
  double farthest = causal.nearest + (causal.added ? distance(changes[at], causal.added) : 0);
  for (size_t i = 0; i < changes.size(); ++i)
    if (i != at) farthest += distance(changes[i], changes[i].value);
  return farthest <= -causal.number / 8;
}

// Whether the mask's last two dimensions count all queries and keys; else it is repeated along one of them.
bool AttentionMask::is_of_keys(const Value* mask) const {
  const Shape& shape = mask->shape();
  return shape.size() >= 2 && shape[shape.size() - 2] == queries_ && shape.back() == keys_;
}

bool AttentionMask::is_causal_condition(const Value* condition, bool hides_where_true) const {
  if (!is_of_keys(condition)) return false;
  const std::optional<Expr> d = diagonal_of(condition, hides_where_true, r_.graph().symbol_ranges());
  return d && is_causal(*d);
}

// What a change does that hides later keys; nullopt where it is another change.
std::optional<AttentionMask::Causal> AttentionMask::causal_part(const ScoreChange& change) const {
  if (const std::optional<Causal> constant = causal_constant(change)) return constant;
  if (change.kind == Kind::add && is_of_keys(change.value)) {
    const std::optional<AdditiveTriangle> triangle = additive_triangle_of(change.value);
    if (triangle && is_causal(triangle->diagonal)) return Causal{triangle->number * change.factor};
  }
  const std::optional<Hiding> hiding = hiding_of(change, kLowestHalf);
  if (!hiding || !is_causal_condition(hiding->change.value, hiding->change.kind == Kind::hide_where_true))
    return std::nullopt;
  return Causal{hiding->change.hidden, hiding->added};
}

// Of a mask of constants, which may hide others, too.
std::optional<AttentionMask::Causal> AttentionMask::causal_constant(const ScoreChange& change) const {
  const std::optional<int64_t> diagonal = (keys_ - queries_).as_constant();
  if (!diagonal || is_one(queries_) || !is_of_keys(change.value)) return std::nullopt;
  const auto number_of = [&](double x) {
    if (change.kind == Kind::add) return x * change.factor;
    return (x != 0) == (change.kind == Kind::hide_where_true) ? change.hidden : 0;
  };
  const std::optional<LaterKeys> later = later_keys_of(change.value, *diagonal, kLowestHalf, number_of);
  return later ? std::optional(Causal{later->number, nullptr, later->nearest, later->is_triangle}) : std::nullopt;
}

// Where keys are seen, apart from what a causal attention hides anyway.
Value* AttentionMask::visible_keys(const ScoreChange& change) {
  const bool hides_where_true = change.kind == Kind::hide_where_true;
  std::vector<Value*> terms;
  add_terms(change.value, hides_where_true ? ElementwiseOp::logical_or : ElementwiseOp::logical_and, terms);
  std::vector<Value*> others;
  for (Value* term : terms) {
    const std::optional<Causal> causal =
        change.hidden == kNothing ? causal_part({change.kind, term, change.scores, 1, kNothing}) : std::nullopt;
    attrs_.causal = attrs_.causal || causal;
    if ((!causal || !causal->is_whole) && !all_equal(term, hides_where_true ? 0 : 1)) others.push_back(term);
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

// Hides keys by a number that is added, which takes one as low as kLow.
Value* AttentionMask::hiding(Value* mask, Value* condition, const ScoreChange& change) {
  if (!(change.hidden <= kLow)) return refuse(fmt::format("hidden scores are {} and masks are added", change.hidden));
  const DType dtype = mask && mask->dtype() == DType::bf16 ? DType::bf16 : DType::f32;
  Value* hidden = r_.scalar(change.hidden, dtype);
  Value* others = mask ? r_.cast(mask, dtype) : r_.scalar(0, dtype);
  const bool hides = change.kind == Kind::hide_where_true;
  return hides ? r_.select(condition, hidden, others) : r_.select(condition, others, hidden);
}

// The mask of one form of the scores, such that it broadcasts to that with all leading dimensions: [6, s, s] of scores
// [6, s, s] becomes [2, 3, s, s].
Value* AttentionMask::aligned(Value* value, const Value* scores) {
  if (value->rank() <= 2) return value;
  const Shape lead = leading(value->shape()), form = leading(scores->shape());
  const auto first = std::find_if_not(lead.begin(), lead.end(), is_one);
  const std::ptrdiff_t left = lead.end() - first;  // dimensions, of which the scores have those at their end
  if (left <= std::ssize(lead_) && std::equal(form.end() - left, form.end(), lead_.end() - left)) return value;
  if (lead != form) return refuse(fmt::format("the mask '{}' is added in another form", value->name()));
  Value* result = reshaped(r_, value, with_rows(lead_, value->shape()));
  return result ? result : refuse(fmt::format("the dimensions of the mask '{}' are not known", value->name()));
}

// The mask with two leading dimensions, or with none.
Value* AttentionMask::folded_heads(Value* mask) {
  if (!mask || lead_.size() == 2 || mask->rank() <= 2) return mask;
  Shape lead = leading(mask->shape());
  while (lead.size() < lead_.size()) lead.insert(lead.begin(), Expr(1));
  if (!std::all_of(lead.begin() + 1, lead.end(), is_one)) {
    std::copy(lead_.begin() + 1, lead_.end(), lead.begin() + 1);
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
