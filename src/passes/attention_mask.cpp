// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_mask.h"

#include <algorithm>
#include <cmath>

#include "passes/attention_shapes.h"
#include "passes/magnitude.h"
#include "passes/match.h"
#include "passes/window_masks.h"

namespace lathe {
namespace {

using ir::Value;
using Kind = ScoreChange::Kind;
using Op = ElementwiseOp;

}  // namespace

Value* AttentionMask::build(const AttentionScores& scores, AttentionAttrs& attrs) {
  Value* mask = find(scores);
  const bool is_read_whole = mask && is_of_keys(mask) && !is_one(queries_) && !is_one(keys_);
  if (!is_read_whole)
    note_.clear();
  else if (note_.empty())
    note_ = fmt::format("no part of '{}' is known to follow from the places of queries and keys", mask->name());
  if (mask) mask = folded_heads(mask);
  attrs.causal = attrs_.causal;
  attrs.window = attrs_.window;
  attrs.hidden = attrs_.hidden;
  attrs.mean_for_none = attrs_.mean_for_none;
  return mask;
}

std::nullptr_t AttentionMask::refuse(std::string reason) {
  if (reason_.empty()) reason_ = std::move(reason);
  return nullptr;
}

// What changes the scores, for scores with all leading dimensions: booleans, or what is added. Null = nothing.
Value* AttentionMask::find(const AttentionScores& scores) {
  std::vector<ScoreChange> changes;
  for (const ScoreChange& change : scores.changes)
    if (change.kind != Kind::multiply && !joins(changes, change)) changes.push_back(change);
  while (take_distances(changes) || take_places(changes, scores.sinks)) {
  }
  // Several masks stay additive: a key that two of them hide has a lower score than one that one hides. Beside
  // distances booleans hide by -inf.
  if (changes.size() == 1) {
    std::vector<ScoreChange> only = {as_hiding(changes[0])};
    if (distances_) lower_hidden(only, 0, scores.sinks);
    if (only[0].kind != Kind::add && (!distances_ || only[0].hidden == kNothing)) return visible_keys(only[0]);
  }
  for (size_t i = 0; i < changes.size(); ++i)
    if (changes[i].hidden > kLow) lower_hidden(changes, i, scores.sinks);
  Value* mask = nullptr;
  for (const ScoreChange& change : changes) {
    Value* value = change.kind == Kind::add ? with_repeated_last(r_, change.value) : change.value;
    value = aligned(value, change.scores);
    if (!value) return nullptr;
    mask = change.kind == Kind::add ? plus(mask, r_.scaled(value, change.factor)) : hiding(mask, value, change);
    if (!mask) return nullptr;
  }
  return mask;
}

// Whether the change hides others as the last one does, which then hides these, too.
bool AttentionMask::joins(std::vector<ScoreChange>& changes, const ScoreChange& change) {
  if (changes.empty() || change.kind == Kind::add || changes.back().kind == Kind::add ||
      change.hidden != changes.back().hidden || change.scores->shape() != changes.back().scores->shape())
    return false;
  const bool hides_where_true = changes.back().kind == Kind::hide_where_true;
  Value* value = change.kind == changes.back().kind ? change.value : r_.unary(UnaryOp::logical_not, change.value);
  changes.back().value = all_of({changes.back().value, value}, hides_where_true);
  return true;
}

// Hides keys by -inf, where that is the same as the number that replaces their scores.
void AttentionMask::lower_hidden(std::vector<ScoreChange>& changes, size_t at, const Value* sinks) {
  ScoreChange& change = changes[at];
  if (change.kind == Kind::add || change.hidden == kNothing) return;
  const Placed hides{.number = change.hidden, .others = {change.value}};
  const bool is_infinite = may_be_infinite(hides, changes, at, sinks);
  if (!is_infinite && !may_be_mean(hides, changes, at, sinks)) return;
  attrs_.mean_for_none = attrs_.mean_for_none || !is_infinite;
  change.hidden = kNothing;
}

// Leaves keys that one of the changes hides by their places to the kernel, which gives them -inf.
bool AttentionMask::take_places(std::vector<ScoreChange>& changes, const Value* sinks) {
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::optional<Placed> placed = placed_part(changes[i]);
    const bool is_infinite = placed && may_be_infinite(*placed, changes, i, sinks);
    if (placed && !is_infinite && !may_be_mean(*placed, changes, i, sinks))
      note_ = fmt::format("what '{}' hides by places has {}, and a query that sees no key is told apart by that",
                          changes[i].value->name(), placed->number);
    if (!placed || (!is_infinite && !may_be_mean(*placed, changes, i, sinks))) continue;
    take_place(changes, i, *placed, is_infinite);
    return true;
  }
  return false;
}

void AttentionMask::take_place(std::vector<ScoreChange>& changes, size_t at, const Placed& placed, bool is_infinite) {
  attrs_.causal = attrs_.causal || placed.seen.causal;
  if (placed.seen.window > 0)
    attrs_.window = attrs_.window > 0 ? std::min(attrs_.window, placed.seen.window) : placed.seen.window;
  attrs_.mean_for_none = attrs_.mean_for_none || !is_infinite;
  if (placed.is_kept) return;
  if (const std::optional<ScoreChange> rest = without_places(changes[at], placed))
    changes[at] = *rest;
  else
    changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(at));
}

// Whether keys that one of the changes hides by their places may have -inf: nothing that is added to that changes it. A
// finite low number is as good where each query sees a key, or a sink, that nothing else brings near that number.
bool AttentionMask::may_be_infinite(const Placed& placed, const std::vector<ScoreChange>& changes, size_t at,
                                    const Value* sinks) const {
  if (std::any_of(changes.begin() + static_cast<std::ptrdiff_t>(at) + 1, changes.end(),
                  [](const ScoreChange& later) { return later.kind != Kind::add && later.hidden != kNothing; }))
    return false;
  if (placed.number == kNothing) return true;
  const std::vector<Range>& ranges = r_.graph().symbol_ranges();
  const bool sees_own = placed.others.empty() && (keys_ - queries_).range(ranges).min >= 0;
  if (!(placed.number <= kLowestHalf) || (!sinks && !sees_own)) return false;
  const double own = sinks ? largest_magnitude(sinks) : placed.nearest;
  return own + farthest_added(placed, changes, at, sinks ? 0 : HUGE_VAL) <= -placed.number / 8;
}

// What all other changes add to a score can be no farther from 0; each of those that hide counts so much.
double AttentionMask::farthest_added(const Placed& placed, const std::vector<ScoreChange>& changes, size_t at,
                                     double of_hiding) const {
  double farthest = placed.added ? std::fabs(changes[at].factor) * largest_magnitude(placed.added) : 0;
  const auto add = [&](const ScoreChange& change) {
    farthest += change.kind == Kind::add ? std::fabs(change.factor) * largest_magnitude(change.value) : of_hiding;
  };
  for (size_t i = 0; i < changes.size(); ++i)
    if (i != at) add(changes[i]);
  std::ranges::for_each(by_distance_, add);
  return farthest;
}

// Whether all keys of a query that sees none have the same score, so that its result is the mean of all values. Those
// that a change before has hidden have -inf, and are none of them.
bool AttentionMask::may_be_mean(const Placed& placed, const std::vector<ScoreChange>& changes, size_t at,
                                const Value* sinks) const {
  const bool hides_some = !attrs_.mean_for_none && (attrs_.causal || attrs_.window > 0);
  if (hides_some || sinks || placed.is_kept) return false;
  // What replaces scores last is the number whatever was added to them before, if that brings no other near it.
  const bool replaces = changes[at].kind != Kind::add && at + 1 == changes.size();
  return placed.number <= (replaces ? kLowestHalf : kLow) &&
         farthest_added(placed, changes, at, HUGE_VAL) <= (placed.number <= kLow ? kNear : -placed.number / 8);
}

// Whether the mask's last two dimensions count all queries and keys; else it is repeated along one of them.
bool AttentionMask::is_of_keys(const Value* mask) const {
  const Shape& shape = mask->shape();
  return shape.size() >= 2 && shape[shape.size() - 2] == queries_ && shape.back() == keys_;
}

// The same of one of several conditions: as many columns as another has, which stays, and not one, must be all keys.
bool AttentionMask::counts_keys(const Value* condition, const std::vector<Value*>& beside, bool is_negated) const {
  if (is_of_keys(condition)) return true;
  const Shape& shape = condition->shape();
  const std::vector<Range>& ranges = r_.graph().symbol_ranges();
  if (shape.size() < 2 || shape[shape.size() - 2] != queries_ || shape.back().range(ranges).min <= 1) return false;
  return std::ranges::any_of(beside, [&](const Value* other) {
    return other->rank() > 0 && other->shape().back() == shape.back() && !band_of(other, is_negated, ranges);
  });
}

// nullopt where the attention has no words for the band.
std::optional<SeenKeys> AttentionMask::seen_in(const Band& band) const {
  const Expr own = keys_ - queries_;
  SeenKeys seen;
  seen.causal = band.last == own;
  if (band.first) {
    const std::optional<int64_t> before = (own - *band.first).as_constant();
    if (!before || *before < 0 || *before >= SeenKeys::kMostWindow) return std::nullopt;
    seen.window = *before + 1;
  }
  if (seen.causal || (attrs_.causal && !band.last)) return seen;
  const bool is_even = band.first && band.last && *band.last - own == own - *band.first;
  return is_even || (!band.first && !band.last) ? std::optional(seen) : std::nullopt;
}

// nullopt where the change does nothing of the kind.
std::optional<AttentionMask::Placed> AttentionMask::placed_part(const ScoreChange& change) const {
  if (change.kind == Kind::add)
    if (const std::optional<Placed> placed = placed_numbers(change.value))
      return Placed{placed->seen, placed->number * change.factor};
  const std::optional<Placed> condition = placed_condition(change);
  return condition ? condition : placed_constant(change);
}

// Of a mask that is 0 or one number, by places alone.
std::optional<AttentionMask::Placed> AttentionMask::placed_numbers(const Value* mask) const {
  const std::optional<AdditiveBand> found =
      is_of_keys(mask) ? additive_band_of(mask, r_.graph().symbol_ranges()) : std::nullopt;
  const std::optional<SeenKeys> seen = found ? seen_in(found->band) : std::nullopt;
  return seen && !seen->is_all() ? std::optional(Placed{*seen, found->number}) : std::nullopt;
}

// Of a condition of several parts, those that are of places: together, or those of them that are such by themselves.
std::optional<AttentionMask::Placed> AttentionMask::placed_condition(const ScoreChange& change) const {
  const std::optional<Hiding> hiding = hiding_of(change, kLowestHalf);
  if (!hiding) return std::nullopt;
  // What is added may hide others by the same number.
  std::optional<Placed> added = hiding->added ? placed_numbers(hiding->added) : std::nullopt;
  if (added && added->number * change.factor == hiding->change.hidden) {
    added->number = hiding->change.hidden;
    added->others = {hiding->change.value};
    return added;
  }
  const bool hides_where_true = hiding->change.kind == Kind::hide_where_true;
  std::vector<Value*> terms;
  add_terms(hiding->change.value, hides_where_true ? Op::logical_or : Op::logical_and, terms);
  for (const bool together : {true, false}) {
    Placed placed{{}, hiding->change.hidden, 0, hiding->added};
    Band all;
    for (Value* term : terms) {
      const std::optional<Band> band = band_of(term, hides_where_true, r_.graph().symbol_ranges());
      const bool is_everywhere = band && !band->first && !band->last;
      const bool is_placed =
          band && (is_everywhere || counts_keys(term, terms, hides_where_true)) && (together || seen_in(*band));
      if (const std::optional<Band> both = is_placed ? common(all, *band) : std::nullopt)
        all = *both;
      else
        placed.others.push_back(term);
    }
    const std::optional<SeenKeys> seen = seen_in(all);
    if (!seen || placed.others.size() == terms.size()) continue;
    placed.seen = *seen;
    return placed;
  }
  return std::nullopt;
}

// Of a mask of constants, which may hide others, too.
std::optional<AttentionMask::Placed> AttentionMask::placed_constant(const ScoreChange& change) const {
  const std::optional<int64_t> diagonal = (keys_ - queries_).as_constant();
  if (!diagonal || attrs_.causal || is_one(queries_) || !is_of_keys(change.value)) return std::nullopt;
  const auto number_of = [&](double x) {
    if (change.kind == Kind::add) return x * change.factor;
    return (x != 0) == (change.kind == Kind::hide_where_true) ? change.hidden : 0;
  };
  const std::optional<LaterKeys> later = later_keys_of(change.value, *diagonal, kLowestHalf, number_of);
  if (!later) return std::nullopt;
  Placed placed{{true}, later->number, later->nearest};
  placed.is_kept = !later->is_triangle || *diagonal < 0;
  return placed;
}

// What is left of the change; none = nothing.
std::optional<ScoreChange> AttentionMask::without_places(const ScoreChange& change, const Placed& placed) {
  if (placed.others.empty())
    return placed.added ? std::optional(ScoreChange{Kind::add, placed.added, change.scores, change.factor})
                        : std::nullopt;
  ScoreChange rest = hiding_of(change, kLowestHalf)->change;
  const bool hides_where_true = rest.kind == Kind::hide_where_true;
  rest.value = all_of(placed.others, hides_where_true);
  if (attrs_.mean_for_none) rest.hidden = kNothing;
  if (!placed.added) return rest;
  const double hidden = attrs_.mean_for_none ? kNothing : placed.number;
  Value* number = r_.scalar_like(hidden / change.factor, placed.added);
  Value* sum =
      hides_where_true ? r_.select(rest.value, number, placed.added) : r_.select(rest.value, placed.added, number);
  return ScoreChange{Kind::add, sum, change.scores, change.factor};
}

// One condition of several, each of which is to be met for a key to be seen, or any for it to be hidden.
Value* AttentionMask::all_of(const std::vector<Value*>& conditions, bool hide_where_true) {
  Value* all = conditions[0];
  for (size_t i = 1; i < conditions.size(); ++i)
    all = r_.binary(hide_where_true ? Op::logical_or : Op::logical_and, all, conditions[i]);
  return all;
}

// Where keys are seen.
Value* AttentionMask::visible_keys(const ScoreChange& change) {
  const bool hides_where_true = change.kind == Kind::hide_where_true;
  std::vector<Value*> terms;
  add_terms(change.value, hides_where_true ? Op::logical_or : Op::logical_and, terms);
  std::erase_if(terms, [&](const Value* term) { return all_equal(term, hides_where_true ? 0 : 1); });
  if (terms.empty()) return nullptr;
  attrs_.hidden = change.hidden;
  Value* condition = aligned(all_of(terms, hides_where_true), change.scores);
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
    Value* repeated = repeated_to(r_, mask, lead, {});
    if (!repeated)
      return refuse(fmt::format("the mask '{}' is repeated along dimensions that are not known", mask->name()));
    mask = repeated;
  }
  Value* result = reshaped(r_, mask, with_rows(folded(lead), mask->shape()));
  return result ? result : refuse(fmt::format("the dimensions of the mask '{}' are not known", mask->name()));
}

}  // namespace lathe
