// SPDX-License-Identifier: Apache-2.0
#include "passes/expert_loops.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ops/rules.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Values = std::vector<Value*>;  // one for each expert

// Which experts a token has chosen, [tokens, choices], of so many.
struct Choices {
  Value* chosen = nullptr;
  int64_t experts = 0;
  bool operator==(const Choices&) const = default;
};

const Value* behind_views(const Value* value) {
  while (value->producer() && value->producer()->has_trait(kView)) value = value->producer()->input(0);
  return value;
}

// The indices of a topk along its last axis, which is of a known size: [tokens, choices].
std::optional<Choices> chosen_of(Value* value, int64_t experts) {
  const Node* topk = made_by(value, OpKind::topk);
  const bool is_of_all = topk && value->index() == 1 && value->rank() == 2 &&
                         is_last_axis(topk->attrs<TopkAttrs>().axis, value) &&
                         topk->input(0)->shape()[1] == Expr(experts) && value->shape()[1].is_constant();
  return is_of_all ? std::optional(Choices{value, experts}) : std::nullopt;
}

// 1 where a choice is an expert, else 0: [tokens, choices, experts].
std::optional<Choices> mask_of(const Value* value) {
  if (const Node* cast = made_by(value, OpKind::cast)) value = cast->input(0);
  const std::optional<int64_t> experts = value->rank() == 3 ? value->shape()[2].as_constant() : std::nullopt;
  if (!experts) return std::nullopt;
  if (const Node* one_hot = made_by(value, OpKind::one_hot)) {
    const bool is_plain =
        ints_of(one_hot->input(2)) == Ints{0, 1} && is_last_axis(one_hot->attrs<OneHotAttrs>().axis, value);
    return is_plain ? chosen_of(one_hot->input(0), *experts) : std::nullopt;
  }
  const Node* equal = made_by(value, ElementwiseOp::equal);
  if (!equal) return std::nullopt;
  Ints numbers;
  for (int64_t i = 0; i < *experts; ++i) numbers.push_back(i);
  for (const size_t side : {0, 1}) {
    const Node* column = made_by(equal->input(side), OpKind::unsqueeze);
    if (column && equal->input(1 - side)->rank() == 1 && ints_of(equal->input(1 - side)) == numbers &&
        column->output()->rank() == 3 && column->output()->shape()[2] == Expr(1))
      return chosen_of(column->input(0), *experts);
  }
  return std::nullopt;
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

// The choices of one expert, as nonzero() lists them: first the numbers of the choices, then those of the tokens.
struct Hits {
  const Node* nonzero = nullptr;
  Choices of;
  int64_t expert = 0;
  const Expr& count() const { return nonzero->output()->shape()[1]; }
};
std::optional<Hits> hits_of(const Node* nonzero) {
  if (!nonzero || !nonzero->is(OpKind::nonzero) || nonzero->input(0)->rank() != 2) return std::nullopt;
  const Value* mask = behind_views(nonzero->input(0));
  if (const Node* cast = made_by(mask, OpKind::cast)) mask = behind_views(cast->input(0));
  const Node* transpose = mask->producer() && mask->producer()->is(OpKind::slice)
                              ? made_by(mask->producer()->input(0), OpKind::transpose)
                              : nullptr;
  const std::optional<int64_t> expert = transpose ? position_of(*mask->producer(), 0) : std::nullopt;
  if (!expert || transpose->attrs<TransposeAttrs>().perm != Ints{2, 1, 0}) return std::nullopt;
  const std::optional<Choices> choices = mask_of(transpose->input(0));
  const Shape wanted = choices ? Shape{choices->chosen->shape()[1], choices->chosen->shape()[0]} : Shape();
  if (!choices || nonzero->input(0)->shape() != wanted) return std::nullopt;
  return Hits{nonzero, *choices, *expert};
}

enum Column : int64_t { kChoice, kToken };
struct HitsColumn {
  const Node* nonzero;
  int64_t column;
  bool operator==(const HitsColumn&) const = default;
};
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

// One expert's addition of what it makes of its tokens, of which none is there twice, for a topk's choices differ.
struct Addition {
  const Node* scatter;
  Hits hits;
};
std::optional<Addition> addition_of(const Node& scatter) {
  if (scatter.num_inputs() != 3 || scatter.output()->rank() != 2) return std::nullopt;
  const Value* places = scatter.input(1);
  ScatterReduction reduction = ScatterReduction::none;
  if (scatter.is(OpKind::scatter_elements)) {
    const auto& attrs = scatter.attrs<ScatterElementsAttrs>();
    const Node* expand = made_by(places, OpKind::expand);
    if (attrs.axis != 0 || !expand || expand->input(0)->shape() != Shape{places->shape()[0], Expr(1)})
      return std::nullopt;
    places = expand->input(0), reduction = attrs.reduction;
  } else if (scatter.is(OpKind::scatter_nd) && places->rank() == 2 && places->shape()[1] == Expr(1)) {
    reduction = scatter.attrs<ScatterNdAttrs>().reduction;
  } else {
    return std::nullopt;
  }
  const bool adds =
      reduction == ScatterReduction::add || (reduction == ScatterReduction::none && splat_of(scatter.input(0)) == 0.0);
  const std::optional<HitsColumn> column = adds ? column_of(places) : std::nullopt;
  const std::optional<Hits> hits = column && column->column == kToken ? hits_of(column->nonzero) : std::nullopt;
  const bool is_whole = hits && scatter.input(2)->shape() == Shape{hits->count(), scatter.output()->shape()[1]};
  return is_whole ? std::optional(Addition{&scatter, *hits}) : std::nullopt;
}

// All of them that make up the node's result, by experts; empty where it is made of anything else, or one is missing or
// there twice.
std::vector<Addition> additions_of(const Node& last) {
  std::vector<Addition> found;
  std::vector<const Value*> left = {last.output()};
  while (!left.empty()) {
    const Value* sum = left.back();
    left.pop_back();
    if (splat_of(sum) == 0.0) continue;
    const Node* node = sum->producer();
    if (!node || (node != &last && !sum->has_single_use())) return {};
    if (is(node, ElementwiseOp::add)) {
      if (!same_shape(node->input(0), sum) || !same_shape(node->input(1), sum)) return {};
      left.insert(left.end(), {node->input(0), node->input(1)});
      continue;
    }
    const std::optional<Addition> each = addition_of(*node);
    if (!each || (!found.empty() && !(each->hits.of == found[0].hits.of))) return {};
    left.push_back(node->input(0));
    found.push_back(*each);
  }
  if (found.empty() || std::ssize(found) != found[0].hits.of.experts) return {};
  std::ranges::sort(found, {}, [](const Addition& each) { return each.hits.expert; });
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].hits.expert != static_cast<int64_t>(i)) return {};
  return found;
}

// What each expert computes for its hits, [hits, n] with any dimensions of 1 beside, for all choices: [tokens, choices
// or 1, n].
class LoopedRows {
 public:
  LoopedRows(Rewrite& r, const std::vector<Addition>& additions) : r_(r), additions_(additions) {}

  // Null where experts compute other things, or something that is none of these.
  Value* of(const Values& values) {
    const auto known = rows_.find(values);
    if (known != rows_.end()) return known->second;
    return rows_[values] = are_rows(values) && are_alike(values) ? made(values) : nullptr;
  }

 private:
  const Choices& choices() const { return additions_[0].hits.of; }
  const Expr& tokens() const { return choices().chosen->shape()[0]; }
  int64_t count() const { return *choices().chosen->shape()[1].as_constant(); }

  // The number of columns, if those are the expert's rows.
  std::optional<Expr> columns_of(const Value* value, size_t expert) const {
    Shape dims = value->shape();
    std::erase(dims, Expr(1));
    if (dims.empty() || dims[0] != additions_[expert].hits.count() || dims.size() > 2) return std::nullopt;
    return dims.size() == 2 ? dims[1] : Expr(1);
  }
  bool are_rows(const Values& values) const {
    const std::optional<Expr> columns = columns_of(values[0], 0);
    for (size_t e = 0; e < values.size(); ++e)
      if (columns_of(values[e], e) != columns) return false;
    return columns && columns->is_constant();
  }
  static bool are_alike(const Values& values) {
    const Node* first = values[0]->producer();
    return first && std::ranges::all_of(values, [&](const Value* value) {
             const Node* node = value->producer();
             return node && node->num_inputs() == first->num_inputs() &&
                    equal(node->attributes(), first->attributes()) && value->index() == values[0]->index() &&
                    value->dtype() == values[0]->dtype();
           });
  }
  static Values inputs_of(const Values& values, size_t input) {
    Values inputs;
    for (const Value* value : values) inputs.push_back(value->producer()->input(input));
    return inputs;
  }
  static bool are_same(const Values& values) {
    return std::ranges::all_of(values, [&](const Value* value) { return value == values[0]; });
  }

  Value* made(const Values& values) {
    const Node& node = *values[0]->producer();
    if (node.has_trait(kView)) return of(inputs_of(values, 0));
    if (node.is(OpKind::gather) || node.is(OpKind::gather_nd)) return of_gather(values);
    if (node.is(OpKind::matmul)) return of_product(values);
    return node.has_trait(kPointwise) && node.num_outputs() == 1 ? of_pointwise(values) : nullptr;
  }

  bool is_column(const Value* value, size_t expert, int64_t column) const {
    return column_of(value) == HitsColumn{additions_[expert].hits.nonzero, column};
  }

  // choice + token * choices.
  bool is_flat_index(const Value* value, size_t expert) const {
    const Node* sum = made_by(behind_views(value), ElementwiseOp::add);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const std::optional<WithScalar> row = sum ? match_scalar(sum->input(side), ElementwiseOp::mul) : std::nullopt;
      if (row && row->c == static_cast<double>(count()) && is_column(row->x, expert, kToken) &&
          is_column(sum->input(1 - side), expert, kChoice))
        return true;
    }
    return false;
  }
  bool is_pair_of_indices(const Value* value, size_t expert) const {
    const Node* concat = made_by(value, OpKind::concat);
    return concat && concat->num_inputs() == 2 && value->rank() == 2 &&
           is_last_axis(concat->attrs<ConcatAttrs>().axis, value) && is_column(concat->input(0), expert, kToken) &&
           is_column(concat->input(1), expert, kChoice);
  }

  // Rows of tokens, or numbers of choices.
  Value* of_gather(const Values& values) {
    const Values tables = inputs_of(values, 0), indices = inputs_of(values, 1);
    if (!are_same(tables)) return nullptr;
    Value* table = tables[0];
    const Node& node = *values[0]->producer();
    const bool is_nd = node.is(OpKind::gather_nd);
    const int64_t axis = is_nd ? 0 : node.attrs<GatherAttrs>().axis;
    if ((is_nd && node.attrs<GatherNdAttrs>().batch_dims != 0) || axis < 0) return nullptr;
    const auto all = [&](const auto& is) {
      for (size_t e = 0; e < indices.size(); ++e)
        if (!is(indices[e], e)) return false;
      return true;
    };
    Shape dims = table->shape();
    const Expr extent = dims[static_cast<size_t>(axis)];
    const bool is_outermost =
        std::all_of(dims.begin(), dims.begin() + axis, [](const Expr& d) { return d == Expr(1); });
    const std::optional<int64_t> columns = columns_of(values[0], 0)->as_constant();
    if (is_outermost && extent == tokens() && all([&](const Value* v, size_t e) { return is_column(v, e, kToken); }))
      return r_.reshape(table, Ints{-1, 1, *columns});
    const bool is_flat = is_outermost && !is_nd && extent == tokens() * count() &&
                         all([&](const Value* v, size_t e) { return is_flat_index(v, e); });
    const bool is_pair = is_nd && dims.size() >= 2 && dims[0] == tokens() && dims[1] == Expr(count()) &&
                         all([&](const Value* v, size_t e) { return is_pair_of_indices(v, e); });
    return is_flat || is_pair ? r_.reshape(table, Ints{-1, count(), *columns}) : nullptr;
  }

  // The experts' constants of the same dimensions, one behind the other; null where they are others.
  Value* stacked(const Values& values) {
    ConcatAttrs attrs;
    std::vector<Tensor> parts;
    for (const Value* value : values) {
      const Tensor* content = value->constant();
      if (!content || content->dims() != values[0]->constant()->dims() || content->dtype() != values[0]->dtype())
        return nullptr;
      Dims dims = content->dims();
      dims.insert(dims.begin(), 1);
      parts.push_back(content->reshaped(dims));
    }
    Result<std::vector<Tensor>> joined = run_op(attrs, parts, 1);
    return joined ? r_.constant((*joined)[0]) : nullptr;
  }

  Value* of_product(const Values& values) {
    const auto& attrs = values[0]->producer()->attrs<MatmulAttrs>();
    const Values weights = inputs_of(values, 1);
    if (attrs.transpose_a || weights[0]->rank() != 2) return nullptr;
    Value* rows = of(inputs_of(values, 0));
    Value* matrices = rows ? stacked(weights) : nullptr;
    if (!matrices) return nullptr;
    ExpertMatmulAttrs product;
    product.transpose_w = attrs.transpose_b;
    product.factors = attrs.factors;
    return r_.add(product, {rows, matrices, choices().chosen});
  }

  // Rows; a number for all, or one for each column, of all experts or of each.
  Value* operand(const Values& values, const Expr& columns) {
    if (Value* rows = values[0]->content() ? nullptr : of(values)) return rows;
    const Shape& dims = values[0]->shape();
    const std::optional<int64_t> volume = lathe::volume(dims).as_constant();
    if (!values[0]->constant() || (volume != 1 && (Expr(volume.value_or(-1)) != columns || dims.back() != columns)))
      return nullptr;
    if (are_same(values)) return r_.reshape(values[0], volume == 1 ? Ints{} : Ints{*volume});
    Value* table = stacked(values);
    return table ? r_.gather(r_.reshape(table, Ints{choices().experts, *volume}), choices().chosen, 0) : nullptr;
  }

  Value* of_pointwise(const Values& values) {
    const Node& node = *values[0]->producer();
    const Expr columns = *columns_of(values[0], 0);
    Values operands;
    for (size_t i = 0; i < node.num_inputs(); ++i) {
      operands.push_back(node.input(i) ? operand(inputs_of(values, i), columns) : nullptr);
      if (node.input(i) && !operands.back()) return nullptr;
    }
    return r_.add(node.attributes(), std::move(operands));
  }

  Rewrite& r_;
  const std::vector<Addition>& additions_;
  std::map<Values, Value*> rows_;
};

}  // namespace

Result<bool> multiply_looped_experts(Rewrite& r) {
  const DType type = r.output()->dtype();
  const auto is_scatter = [](const Node* node) {
    return node && (node->is(OpKind::scatter_nd) || node->is(OpKind::scatter_elements));
  };
  const bool is_sum =
      is(r.node, ElementwiseOp::add) && (is_scatter(r.input(0)->producer()) || is_scatter(r.input(1)->producer()));
  if (!r.context.fast_math || (!is_sum && !is_scatter(r.node)) ||
      (type != DType::f32 && type != DType::f16 && type != DType::bf16))
    return false;
  const std::vector<Addition> additions = additions_of(*r.node);
  if (additions.empty()) return false;
  Values updates;
  for (const Addition& each : additions) updates.push_back(each.scatter->input(2));
  Value* rows = LoopedRows(r, additions).of(updates);
  if (r.failed() || !rows || rows->rank() != 3 || rows->shape()[1] != additions[0].hits.of.chosen->shape()[1])
    return r.finish(r.output());  // nothing is changed
  for (const Addition& each : additions)
    if (each.scatter != r.node) r.absorb(each.scatter);
  return r.finish(r.reduce(ReduceOp::sum, rows, {1}, false));
}

}  // namespace lathe
