// SPDX-License-Identifier: Apache-2.0
// What of an attention's mask follows from distances.
#include <algorithm>

#include "ops/rules.h"
#include "passes/attention_mask.h"
#include "passes/match.h"

namespace lathe {

using ir::Value;
using Kind = ScoreChange::Kind;
using Op = ElementwiseOp;

namespace {

// x in another order of its dimensions, of which a transposition that undoes that is taken away.
Value* reordered(Rewrite& r, Value* x, const TransposeAttrs& order) {
  if (x->rank() == 0) return x;
  const auto rank = static_cast<size_t>(x->rank());
  const ir::Node* before = made_by(x, OpKind::transpose);
  if (!before) return r.transpose(x, permutation_of(order, rank));
  Ints perm = permutation_of(order, rank);
  const Ints inner = permutation_of(before->attrs<TransposeAttrs>(), rank);
  for (int64_t& axis : perm) axis = inner[static_cast<size_t>(axis)];
  return std::ranges::is_sorted(perm) ? before->input(0) : r.transpose(before->input(0), perm);
}

// A sum that is transposed as the sum of what is transposed (tf2onnx, of biases and masks).
Value* sum_of_transposed(Rewrite& r, Value* value) {
  const ir::Node* transpose = made_by(value, OpKind::transpose);
  const ir::Node* sum = transpose ? made_by(transpose->input(0), Op::add) : nullptr;
  if (!sum) return value;
  for (const Value* term : sum->inputs())
    if (term->rank() != 0 && term->rank() != value->rank()) return value;
  const auto& order = transpose->attrs<TransposeAttrs>();
  return r.plus(reordered(r, sum->input(0), order), reordered(r, sum->input(1), order));
}

}  // namespace

// Leaves what one of the changes adds by distances to the kernel, be it a term of a sum or what is added to seen keys,
// unless what is hidden could not be told by numbers then.
bool AttentionMask::take_distances(std::vector<ScoreChange>& changes) {
  const auto may_become_infinite = [&](const ScoreChange& change) {
    return change.kind == Kind::add || change.hidden <= (&change == &changes.back() ? kLowestHalf : kLow);
  };
  if (is_one(queries_) || is_one(keys_) || lead_.size() > 2 || !std::ranges::all_of(changes, may_become_infinite))
    return false;
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    if (change->kind != Kind::add) continue;
    const std::optional<Hiding> hiding = hiding_of(*change, kLow);
    if (hiding && hiding->added && take_distance({Kind::add, hiding->added, change->scores, change->factor})) {
      *change = hiding->change;
      return true;
    }
    std::vector<Value*> terms;
    add_terms(sum_of_transposed(r_, change->value), Op::add, terms);
    const auto taken = std::ranges::find_if(terms, [&](Value* term) {
      return take_distance({Kind::add, term, change->scores, change->factor});
    });
    if (taken == terms.end()) continue;
    terms.erase(taken);
    if (terms.empty()) {
      changes.erase(change);
      return true;
    }
    change->value = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) change->value = r_.plus(change->value, terms[i]);
    return true;
  }
  return false;
}

bool AttentionMask::take_distance(const ScoreChange& change) {
  if (!is_of_keys(change.value) || change.value->dtype() == DType::f64 || placed_part(change) ||
      hiding_of(change, kLowestHalf))
    return false;
  Value* row = rows_.of(change.value);
  if (row) row = row_of_heads(row, change.scores);
  if (!row) return false;
  if (row->constant() && !seen_are_near(*row->constant(), change.factor)) return false;
  distances_ = plus(distances_, r_.scaled(row, change.factor));
  by_distance_.push_back(change);
  return true;
}

// Whether none of a row's numbers hides a key that is not hidden by its place.
bool AttentionMask::seen_are_near(const Tensor& row, double factor) const {
  const std::vector<double> numbers = to_doubles(row);
  const int64_t length = row.dims().back(), seen = attrs_.causal ? keys_.as_constant().value_or(length) : length;
  for (int64_t i = 0; i < std::ssize(numbers); ++i)
    if (i % length < seen && numbers[i] * factor <= kLowestHalf) return false;
  return true;
}

// [heads, distances] of a row that broadcasts to these scores, or of one head for all; null where it has others.
Value* AttentionMask::row_of_heads(Value* row, const Value* scores) {
  if (row->rank() == 0 || is_one(row->shape().back())) return nullptr;
  if (row->rank() == 1) return r_.unsqueeze(row, {0});
  if (row->rank() == 4 && !is_one(row->shape()[0]) && row->constant() && is_repeated(*row->constant(), 0))
    row = r_.slice(row, 0, 0, 1);
  Ints axes;
  for (int64_t axis = 0; axis + 1 < row->rank(); ++axis) {
    const bool is_head = axis == row->rank() - 3, is_single = is_one(row->shape()[static_cast<size_t>(axis)]);
    if (!is_single && !(is_head && lead_.size() == 2 && row->shape()[static_cast<size_t>(axis)] == lead_.back() &&
                        leading(scores->shape()) == lead_))
      return nullptr;
    if (!is_head) axes.push_back(axis);
  }
  return row->rank() == 2 ? row : r_.squeeze(row, axes);
}

}  // namespace lathe
