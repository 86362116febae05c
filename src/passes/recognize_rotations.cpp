// SPDX-License-Identifier: Apache-2.0
// Rotary positions turn pairs of elements of the last axis: (x1 c - x2 s, x2 c + x1 s), where x1 and x2 are the axis's
// halves or its even and odd elements (RoFormer, section 3.2). Models write that by cutting x and joining what became
// of the parts, which would be a step for each part. Here it is x times c plus x with its pairs backwards times s,
// whose sign alternates: one expression, as compose/rotary_embedding.h has it.
#include <algorithm>
#include <array>
#include <numeric>

#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using ir::Value;

// Every `step`-th element of x's last axis from `begin` on, negated or not.
struct Part {
  Value* x = nullptr;
  int64_t begin = 0;
  int64_t step = 1;
  bool negated = false;
  bool of_pairs = false;  // x has pairs along an axis of their own, its last, whose axis before it the part has as last
};

std::optional<int64_t> last_extent(const Value* x) {
  return x->rank() == 0 ? std::nullopt : x->shape().back().as_constant();
}

std::optional<Part> part_of_slice(const ir::Node& slice) {
  constexpr size_t kStarts = 1, kAxes = 3, kSteps = 4;
  Value* x = slice.input(0);
  const auto optional = [&](size_t i) { return i < slice.num_inputs() ? slice.input(i) : nullptr; };
  const std::optional<Ints> starts = ints_of(slice.input(kStarts)), axes = axes_of(optional(kAxes), 1, x->rank());
  const std::optional<Ints> steps = optional(kSteps) ? ints_of(optional(kSteps)) : Ints{1};
  if (!starts || !axes || !steps || starts->size() != 1 || *axes != Ints{x->rank() - 1}) return std::nullopt;
  int64_t begin = starts->front();
  if (begin < 0) begin += last_extent(x).value_or(0);
  return begin < 0 ? std::nullopt : std::optional(Part{x, begin, steps->front()});
}

std::optional<Part> part_of_split(const ir::Node& split, const Value* part) {
  const int64_t axis = split.attrs<SplitAttrs>().axis, rank = part->rank();
  if ((axis < 0 ? axis + rank : axis) != rank - 1) return std::nullopt;
  int64_t begin = 0;
  for (size_t i = 0; i < part->index(); ++i) {
    const std::optional<int64_t> extent = last_extent(split.output(i));
    if (!extent) return std::nullopt;
    begin += *extent;
  }
  return Part{split.input(0), begin};
}

std::optional<Part> part_of(const Value* value);

// One of each pair of an axis of their own, which a view takes away.
std::optional<Part> part_of_pairs(const ir::Node& view) {
  Shape with_one = view.output()->shape();
  with_one.push_back(Expr(1));
  if (view.input(0)->shape() != with_one) return std::nullopt;
  std::optional<Part> part = part_of(view.input(0));
  if (!part || part->of_pairs || part->step != 1 || last_extent(part->x) != 2) return std::nullopt;
  part->step = 2, part->of_pairs = true;
  return part;
}

std::optional<Part> part_of(const Value* value) {
  if (const ir::Node* neg = made_by(value, UnaryOp::neg)) {
    std::optional<Part> part = part_of(neg->input(0));
    if (part) part->negated = !part->negated;
    return part;
  }
  if (const ir::Node* slice = made_by(value, OpKind::slice)) return part_of_slice(*slice);
  if (const ir::Node* split = made_by(value, OpKind::split)) return part_of_split(*split, value);
  if (const ir::Node* view = value->producer(); view && view->has_trait(kView) && value->rank() > 0)
    return part_of_pairs(*view);
  return std::nullopt;
}

// How the pairs of an axis of 2 * `count` lie in it.
struct Pairs {
  bool interleaved = false;  // elements 2i and 2i + 1, joined along an axis of their own; else i and i + count
  int64_t count = 0;

  bool is(const Part& part, int64_t which) const {
    const std::optional<int64_t> extent =
        part.of_pairs ? (part.x->shape().end() - 2)->as_constant() : last_extent(part.x);
    return extent == (part.of_pairs ? count : 2 * count) && part.step == (interleaved ? 2 : 1) &&
           part.begin == (interleaved ? which : which * count);
  }
};

// Two neighbours that a node joins into pairs along the last axis, alone or beside what positions do not turn.
struct Joined {
  Pairs pairs;
  std::array<Value*, 2> parts;
  size_t first = 0;                     // of them, among the node's inputs
  std::array<bool, 2> are_slices = {};  // which have an axis of 1 behind: views that took it away and back are gone

  std::optional<Part> part(size_t i) const {
    std::optional<Part> part = part_of(parts[i]);
    if (!part || !are_slices[i]) return part;
    if (part->of_pairs || part->step != 1 || last_extent(part->x) != 2) return std::nullopt;
    part->step = 2, part->of_pairs = true;
    return part;
  }
};

// What has a last axis of 1 more than `view` reads, if that is all that the view does.
Value* before_unsqueeze(Value* value) {
  const ir::Node* view = value->producer();
  if (!view || !view->has_trait(kView) || value->rank() == 0 || value->shape().back() != Expr(1)) return nullptr;
  const Shape& shape = view->input(0)->shape();
  return std::equal(shape.begin(), shape.end(), value->shape().begin(), value->shape().end() - 1) ? view->input(0)
                                                                                                  : nullptr;
}

std::optional<Joined> joined_by(const ir::Node& concat, size_t first_part) {
  const int64_t axis = concat.attrs<ConcatAttrs>().axis, rank = concat.output()->rank();
  if ((axis < 0 ? axis + rank : axis) != rank - 1) return std::nullopt;
  Joined joined{{}, {concat.input(first_part), concat.input(first_part + 1)}, first_part};
  const std::array<Value*, 2> viewed = {before_unsqueeze(joined.parts[0]), before_unsqueeze(joined.parts[1])};
  std::array<std::optional<int64_t>, 2> counts = {last_extent(joined.parts[0]), last_extent(joined.parts[1])};
  if ((viewed[0] || viewed[1]) && concat.num_inputs() == 2 && counts[0] == 1 && counts[1] == 1) {
    joined.pairs.interleaved = true;
    for (const size_t i : {0, 1}) {
      joined.are_slices[i] = !viewed[i];
      if (viewed[i]) joined.parts[i] = viewed[i];
      counts[i] = last_extent(viewed[i] ? viewed[i] : viewed[1 - i]);
    }
  }
  const auto& [first, second] = counts;
  if (!first || *first == 0 || first != second || !is_floating(concat.output()->dtype())) return std::nullopt;
  joined.pairs.count = *first;
  return joined;
}

// How the pairs lie that two parts of one value are of: as in the result, or even and odd elements where that has
// halves (DeepSeek), or the other way round.
std::optional<Pairs> pairs_of(const Part& first, const Part& second, const Pairs& joined) {
  if (first.x != second.x) return std::nullopt;
  for (const Pairs& pairs : {joined, Pairs{!joined.interleaved, joined.count}})
    if (pairs.is(first, 0) && pairs.is(second, 1)) return pairs;
  return std::nullopt;
}

// x with its last axis as pairs that lie as in the result, and the same with each pair backwards; dims before it are
// copied.
struct PairedValue {
  Value *forwards, *backwards;
};
PairedValue pair_up(Rewrite& r, const Part& part, const Pairs& pairs, const Pairs& joined) {
  const auto rank = static_cast<size_t>(part.x->rank() - (part.of_pairs ? 1 : 0));
  Ints shape(rank + 1, 0);
  shape[rank - 1] = pairs.interleaved ? pairs.count : 2;
  shape[rank] = pairs.interleaved ? 2 : pairs.count;
  Value* forwards = part.of_pairs ? part.x : r.reshape(part.x, shape);
  if (pairs.interleaved != joined.interleaved) {
    Ints order(rank + 1);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[rank - 1], order[rank]);
    forwards = r.transpose(forwards, order);
  }
  const auto axis = static_cast<int64_t>(joined.interleaved ? rank : rank - 1);
  return {forwards, r.add(SliceAttrs{}, {forwards, r.ints({-1}), r.ints({INT64_MIN}), r.ints({axis}), r.ints({-1})})};
}

// A number for each of a pair, beside values of pairs.
Value* of_each(Rewrite& r, const Pairs& pairs, double first, double second) {
  const DType dtype = r.output()->dtype();
  Value* both = r.concat({r.filled(first, dtype, {1}), r.filled(second, dtype, {1})}, 0);
  return pairs.interleaved ? both : r.unsqueeze(both, {1});
}

Result<bool> finish(Rewrite& r, const Joined& joined, Value* result) {
  const auto rank = static_cast<size_t>(r.output()->rank());
  if (!joined.pairs.interleaved) {
    Ints shape(rank, 0);
    shape.back() = 2 * joined.pairs.count;
    result = r.reshape(result, shape);
  }
  if (r.node->num_inputs() == 2) return r.finish(result);
  std::vector<Value*> inputs(r.node->inputs().begin(), r.node->inputs().end());
  inputs[joined.first] = result;
  inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(joined.first) + 1);
  return r.finish(r.concat(inputs, static_cast<int64_t>(rank) - 1));
}

Result<bool> join_parts(Rewrite& r, const Joined& joined) {
  const Pairs& pairs = joined.pairs;
  const std::optional<Part> first = joined.part(0), second = joined.part(1);
  const std::optional<Pairs> of_parts = first && second ? pairs_of(*second, *first, pairs) : std::nullopt;
  if (!of_parts) return false;
  Value* result = pair_up(r, *first, *of_parts, pairs).backwards;
  if (first->negated || second->negated)
    result = r.mul(result, of_each(r, pairs, first->negated ? -1 : 1, second->negated ? -1 : 1));
  return finish(r, joined, result);
}

// part * factor, in either order.
struct Turned {
  Part part;
  Value* factor;
};
std::optional<Turned> turned_by(const Value* value) {
  const ir::Node* mul = made_by(value, ElementwiseOp::mul);
  if (!mul || !value->has_single_use()) return std::nullopt;
  for (size_t i = 0; i < 2; ++i)
    if (const std::optional<Part> part = part_of(mul->input(i));
        part && !part->negated && same_shape(mul->input(i), value))
      return Turned{*part, mul->input(1 - i)};
  return std::nullopt;
}

// part * factor + part * factor, or minus, the first part of the pair first.
struct TurnedPair {
  Turned first, second;
  Pairs pairs;
};
std::optional<TurnedPair> sum_of(const Value* value, ElementwiseOp op, const Pairs& joined) {
  const ir::Node* sum = made_by(value, op);
  if (!sum || !value->has_single_use()) return std::nullopt;
  const std::optional<Turned> a = turned_by(sum->input(0)), b = turned_by(sum->input(1));
  if (!a || !b) return std::nullopt;
  if (const auto pairs = pairs_of(a->part, b->part, joined)) return TurnedPair{*a, *b, *pairs};
  if (op != ElementwiseOp::add) return std::nullopt;
  const auto pairs = pairs_of(b->part, a->part, joined);
  return pairs ? std::optional(TurnedPair{*b, *a, *pairs}) : std::nullopt;
}

Result<bool> join_turned(Rewrite& r, const Joined& joined) {
  const Pairs& pairs = joined.pairs;
  const auto first = sum_of(joined.parts[0], ElementwiseOp::sub, pairs);   // x1 c - x2 s
  const auto second = sum_of(joined.parts[1], ElementwiseOp::add, pairs);  // x1 s + x2 c
  if (!first || !second || first->first.part.x != second->first.part.x) return false;
  const auto [cosines, sines] = std::pair(first->first.factor, first->second.factor);
  if (cosines != second->second.factor || sines != second->first.factor) return false;
  const auto beside_pairs = [&](Value* x) {
    return x->rank() == 0 ? x : r.unsqueeze(x, {pairs.interleaved ? x->rank() : x->rank() - 1});
  };
  const PairedValue x = pair_up(r, first->first.part, first->pairs, pairs);
  Value* signed_sines = r.mul(beside_pairs(sines), of_each(r, pairs, -1, 1));
  return finish(r, joined, r.plus(r.mul(x.forwards, beside_pairs(cosines)), r.mul(x.backwards, signed_sines)));
}

template <Result<bool> (*join)(Rewrite&, const Joined&)>
Result<bool> join_neighbours(Rewrite& r) {
  for (size_t first = 0; first + 1 < r.node->num_inputs(); ++first) {
    const std::optional<Joined> joined = joined_by(*r.node, first);
    if (!joined) continue;
    LATHE_ASSIGN(const bool is_done, join(r, *joined));
    if (is_done) return true;
  }
  return false;
}

}  // namespace

Result<bool> recognize_rotations(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"concat(-x2, x1) = (-1, 1) * pairs of x backwards", OpKind::concat, join_neighbours<join_parts>},
      {"concat(x1 c - x2 s, x2 c + x1 s) = x c + (-s, s) * pairs of x backwards", OpKind::concat,
       join_neighbours<join_turned>},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
