// SPDX-License-Identifier: Apache-2.0
#include "passes/expert_loops.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ops/rules.h"
#include "passes/expert_hits.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Values = std::vector<Value*>;  // one for each expert

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
    if (node.is(OpKind::slice)) return of_slice(values);
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

  // The same columns of each.
  Value* of_slice(const Values& values) {
    const Node& node = *values[0]->producer();
    const Values wholes = inputs_of(values, 0);
    const std::optional<Expr> columns = columns_of(wholes[0], 0);
    if (!columns || wholes[0]->shape().back() != *columns || node.num_inputs() < 4 ||
        axes_of(node.input(3), 1, wholes[0]->rank()) != Ints{wholes[0]->rank() - 1})
      return nullptr;
    Values operands = node.inputs();
    for (size_t i = 1; i < operands.size(); ++i)
      if (!are_same(inputs_of(values, i))) return nullptr;
    operands[0] = of(wholes);
    if (!operands[0]) return nullptr;
    operands[3] = r_.ints({2});
    return r_.add(node.attributes(), std::move(operands));
  }

  // What all experts have, of which each takes its own by its number; null where they do otherwise.
  Value* shared_stack(const Values& values) const {
    Value* stack = nullptr;
    for (size_t e = 0; e < values.size(); ++e) {
      const Node* gather = made_by(values[e], OpKind::gather);
      if (!gather || gather->attrs<GatherAttrs>().axis != 0 || gather->input(0)->rank() != values[e]->rank() + 1 ||
          (stack && stack != gather->input(0)) ||
          number_of_hit(gather->input(1), choices()) != additions_[e].hits.expert)
        return nullptr;
      stack = gather->input(0);
    }
    return stack->content() && stack->shape()[0] == Expr(choices().experts) ? stack : nullptr;
  }

  // The experts' constants of the same dimensions, one behind the other; null where they are others.
  Value* stacked(const Values& values) {
    if (Value* stack = shared_stack(values)) return stack;
    ConcatAttrs attrs;
    std::vector<Tensor> parts;
    for (const Value* value : values) {
      const Tensor* content = value->constant();
      if (!content || !values[0]->constant() || content->dims() != values[0]->constant()->dims() ||
          content->dtype() != values[0]->dtype())
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
    if ((!values[0]->constant() && !shared_stack(values)) ||
        (volume != 1 && (Expr(volume.value_or(-1)) != columns || dims.back() != columns)))
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
