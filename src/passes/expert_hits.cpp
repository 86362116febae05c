// SPDX-License-Identifier: Apache-2.0
#include "passes/expert_hits.h"

#include <algorithm>

#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// The indices of a topk along its last axis, which is of a known size: [tokens, choices]. `numbers`: how many a mask
// tells apart, some of which may be of no expert.
std::optional<Choices> chosen_of(Value* value, int64_t numbers) {
  const Node* topk = made_by(value, OpKind::topk);
  const bool is_of_last = topk && value->index() == 1 && value->rank() == 2 &&
                          is_last_axis(topk->attrs<TopkAttrs>().axis, value) && value->shape()[1].is_constant();
  const std::optional<int64_t> experts = is_of_last ? topk->input(0)->shape()[1].as_constant() : std::nullopt;
  return experts && *experts <= numbers ? std::optional(Choices{value, *experts}) : std::nullopt;
}

// 1 where a choice is an expert, else 0: [tokens, choices, numbers].
std::optional<Choices> mask_of(const Value* value) {
  if (const Node* cast = made_by(value, OpKind::cast)) value = cast->input(0);
  const std::optional<int64_t> depth = value->rank() == 3 ? value->shape()[2].as_constant() : std::nullopt;
  if (!depth) return std::nullopt;
  if (const Node* one_hot = made_by(value, OpKind::one_hot)) {
    const bool is_plain =
        ints_of(one_hot->input(2)) == Ints{0, 1} && is_last_axis(one_hot->attrs<OneHotAttrs>().axis, value);
    return is_plain ? chosen_of(one_hot->input(0), *depth) : std::nullopt;
  }
  const Node* equal = made_by(value, ElementwiseOp::equal);
  if (!equal) return std::nullopt;
  Ints numbers;
  for (int64_t i = 0; i < *depth; ++i) numbers.push_back(i);
  for (const size_t side : {0, 1}) {
    const Node* column = made_by(equal->input(side), OpKind::unsqueeze);
    if (column && equal->input(1 - side)->rank() == 1 && ints_of(equal->input(1 - side)) == numbers &&
        column->output()->rank() == 3 && column->output()->shape()[2] == Expr(1))
      return chosen_of(column->input(0), *depth);
  }
  return std::nullopt;
}

// The same as [numbers, choices, tokens].
std::optional<Choices> turned_mask_of(const Value* value) {
  const Node* transpose = made_by(value, OpKind::transpose);
  return transpose && transpose->attrs<TransposeAttrs>().perm == Ints{2, 1, 0} ? mask_of(transpose->input(0))
                                                                               : std::nullopt;
}

// The positions [begin, begin + 1) of an axis.
std::optional<int64_t> position_of(const Node& slice, int64_t axis) {
  if (!slice.is(OpKind::slice) || slice.num_inputs() < 4) return std::nullopt;
  const std::optional<Ints> begin = ints_of(slice.input(1)), end = ints_of(slice.input(2)),
                            axes = ints_of(slice.input(3));
  const bool is_one = begin && end && begin->size() == 1 && end->size() == 1 && (*begin)[0] >= 0 &&
                      (*end)[0] == (*begin)[0] + 1 && axes == Ints{axis} &&
                      (slice.num_inputs() == 4 || !slice.input(4) || ints_of(slice.input(4)) == Ints{1});
  return is_one ? std::optional((*begin)[0]) : std::nullopt;
}

// Whether it counts for each number how often it was chosen.
bool counts_choices(const Value* value, const Choices& choices) {
  const Node* sum = made_by(value, OpKind::reduce);
  if (!sum || value->rank() != 1 || sum->attrs<ReduceAttrs>().op != ReduceOp::sum) return false;
  const bool has_list = sum->num_inputs() > 1 && sum->input(1);
  const std::optional<Ints> axes = has_list ? ints_of(sum->input(1)) : std::optional(sum->attrs<ReduceAttrs>().axes);
  return (axes == Ints{1, 2} || axes == Ints{-2, -1} || axes == Ints{-1, -2}) &&
         turned_mask_of(sum->input(0)) == choices;
}

}  // namespace

const Value* behind_views(const Value* value) {
  while (value->producer() && value->producer()->has_trait(kView)) value = value->producer()->input(0);
  return value;
}

std::optional<int64_t> number_of_hit(const Value* value, const Choices& choices) {
  value = behind_views(value);
  const Node* split = made_by(value, OpKind::split);
  const Node* nonzero = split ? made_by(behind_views(split->input(0)), OpKind::nonzero) : nullptr;
  if (!nonzero || nonzero->input(0)->rank() != 1 || static_cast<int64_t>(split->num_outputs()) != choices.experts)
    return std::nullopt;
  for (size_t i = 0; i < split->num_outputs(); ++i)
    if (volume(split->output(i)->shape()) != Expr(1)) return std::nullopt;
  const Node* is_hit = made_by(nonzero->input(0), ElementwiseOp::greater);
  const bool are_hit = is_hit && scalar_of(is_hit->input(1)) == 0 && counts_choices(is_hit->input(0), choices);
  return are_hit ? std::optional(static_cast<int64_t>(value->index())) : std::nullopt;
}

std::optional<Hits> hits_of(const Node* nonzero) {
  if (!nonzero || !nonzero->is(OpKind::nonzero) || nonzero->input(0)->rank() != 2) return std::nullopt;
  const Value* mask = behind_views(nonzero->input(0));
  if (const Node* cast = made_by(mask, OpKind::cast)) mask = behind_views(cast->input(0));
  const Node* part = mask->producer();
  if (!part || (!part->is(OpKind::slice) && !part->is(OpKind::gather))) return std::nullopt;
  const std::optional<Choices> choices = turned_mask_of(part->input(0));
  const Shape wanted = choices ? Shape{choices->chosen->shape()[1], choices->chosen->shape()[0]} : Shape();
  if (!choices || nonzero->input(0)->shape() != wanted) return std::nullopt;
  std::optional<int64_t> expert;
  if (part->is(OpKind::slice))
    expert = position_of(*part, 0);
  else if (part->attrs<GatherAttrs>().axis == 0)
    expert = number_of_hit(part->input(1), *choices);
  return expert ? std::optional(Hits{nonzero, *choices, *expert}) : std::nullopt;
}

std::optional<HitsColumn> column_of(const Value* value) {
  value = behind_views(value);
  const Node* part = value->producer();
  if (!part || (!part->is(OpKind::split) && !part->is(OpKind::slice))) return std::nullopt;
  const Node* transpose = made_by(part->input(0), OpKind::transpose);
  const Node* nonzero = transpose ? made_by(transpose->input(0), OpKind::nonzero) : nullptr;
  if (!nonzero || transpose->output()->rank() != 2 || transpose->attrs<TransposeAttrs>().perm == Ints{0, 1})
    return std::nullopt;
  if (part->is(OpKind::slice)) {
    const std::optional<int64_t> column = position_of(*part, 1);
    return column ? std::optional(HitsColumn{nonzero, *column}) : std::nullopt;
  }
  const bool is_whole = part->num_outputs() == 2 && is_last_axis(part->attrs<SplitAttrs>().axis, part->input(0));
  return is_whole ? std::optional(HitsColumn{nonzero, static_cast<int64_t>(value->index())}) : std::nullopt;
}

}  // namespace lathe
