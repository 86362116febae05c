// SPDX-License-Identifier: Apache-2.0
// Horizontal fusion: matmuls of one value by several constants become one, whose columns are cut apart. So queries,
// keys and values take one launch, which reads what they are made of once. Two that meet in an expression, as a gate
// and what it gates, alternate column by column, those of experts as well: a kernel has both numbers that make one of
// the result's.
#include <algorithm>
#include <array>

#include "ops/rules.h"
#include "passes/column_matmul.h"
#include "passes/joined_weights.h"
#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// Whether what follows is no computation that the matmul's kernel could take in.
bool is_only_moved(const Value* value) {
  return !value->is_graph_output() && !value->uses().empty() &&
         std::all_of(value->uses().begin(), value->uses().end(),
                     [](const ir::Use& use) { return use.node->has_trait(kView | kStrided); });
}

// The expression's nodes that compute with this value and constants alone, and the one behind them, which reads others.
const Node* meeting_point(const Value* value) {
  while (value->has_single_use() && !value->is_graph_output()) {
    const Node* next = value->uses()[0].node;
    if (!next->has_trait(kPointwise) || next->num_outputs() != 1 || next->output()->shape() != value->shape())
      return nullptr;
    for (const Value* input : next->inputs())
      if (input && input != value && !input->content()) return next;
    value = next->output();
  }
  return nullptr;
}

// The columns of a product in two halves.
using Halves = std::array<Value*, 2>;
std::optional<Halves> halves_of(const Value& y, int64_t columns) {
  Halves halves = {};
  if (y.is_graph_output() || columns % 2 != 0) return std::nullopt;
  if (y.has_single_use() && y.uses()[0].node->is(OpKind::split)) {
    Node& split = *y.uses()[0].node;
    if (split.num_outputs() != 2 || !is_last_axis(split.attrs<SplitAttrs>().axis, &y)) return std::nullopt;
    halves = {split.output(0), split.output(1)};
  } else {
    if (y.uses().size() != 2) return std::nullopt;
    for (const ir::Use& use : y.uses()) {
      const Node& slice = *use.node;
      if (!slice.is(OpKind::slice) || use.index != 0 || slice.num_inputs() < 4) return std::nullopt;
      const std::optional<Ints> first = ints_of(slice.input(1)), axis = ints_of(slice.input(3));
      if (!first || first->size() != 1 || !axis || axis->size() != 1 || !is_last_axis((*axis)[0], &y) ||
          (slice.num_inputs() > 4 && slice.input(4) && ints_of(slice.input(4)) != Ints{1}) ||
          ((*first)[0] != 0 && (*first)[0] != columns / 2))
        return std::nullopt;
      halves[(*first)[0] == 0 ? 0 : 1] = slice.output();
    }
  }
  for (const Value* half : halves)
    if (!half || half->shape().back() != Expr(columns / 2)) return std::nullopt;
  return halves;
}

// Where they meet in an expression.
std::optional<Halves> meeting_halves(const ColumnMatmul& both) {
  const std::optional<Halves> halves = halves_of(*both.result, both.columns);
  const Node* meeting = halves ? meeting_point((*halves)[0]) : nullptr;
  return meeting && meeting_point((*halves)[1]) == meeting ? halves : std::nullopt;
}

// Whether every second of its columns is read, as those are that meet.
bool alternates(const Value& y) {
  return std::ranges::any_of(y.uses(), [](const ir::Use& use) {
    constexpr size_t kSteps = 4;
    return use.node->is(OpKind::slice) && use.node->num_inputs() > kSteps &&
           ints_of(use.node->input(kSteps)) == Ints{2};
  });
}

// Whether the node moves the value, or computes with it and constants alone.
bool continues(const Node& node, const Value* value) {
  const auto is_constant = [&](const Value* input) { return !input || input->content() || input == value; };
  return node.num_outputs() == 1 && (node.has_trait(kView | kStrided) || node.has_trait(kPointwise)) &&
         std::ranges::all_of(node.inputs(), is_constant);
}

// Whether constants and moves bring it to levels again, which the matmul's kernel could make.
bool becomes_levels(const Value* value) {
  constexpr size_t kMostValues = 64;
  std::vector<const Value*> values{value};
  for (size_t i = 0; i < values.size() && values.size() <= kMostValues; ++i)
    for (const ir::Use& use : values[i]->uses()) {
      if (use.node->is(OpKind::quantize)) return true;
      if (continues(*use.node, values[i]) && std::ranges::count(values, use.node->output()) == 0)
        values.push_back(use.node->output());
    }
  return false;
}

std::optional<ColumnMatmul> moved_matmul_of(Node* node, const PassContext& context) {
  const std::optional<ColumnMatmul> found = changed_matmul_of(node, context);
  if (!found || !node->is(OpKind::matmul)) return std::nullopt;
  if (!is_only_moved(found->result)) return std::nullopt;
  if (multiplies_levels(*node)) return becomes_levels(found->result) ? std::nullopt : found;
  const bool is_for_pairs = context.arithmetic.paired_columns && (alternates(*found->result) || meeting_halves(*found));
  return is_for_pairs ? std::nullopt : found;
}

// Those of the same left operand, in the order of their uses.
std::vector<ColumnMatmul> matmuls_like(const ColumnMatmul& first, PassContext& context) {
  std::vector<ColumnMatmul> matmuls;
  for (const ir::Use& use : first.matmul->input(0)->uses())
    if (const std::optional<ColumnMatmul> other = use.index == 0 ? moved_matmul_of(use.node, context) : std::nullopt)
      if (are_alike(*other, first, context)) matmuls.push_back(*other);
  return matmuls;
}

// Input `input` of the matmuls' change `change` for the columns of all.
Result<Tensor> joined_constants(const std::vector<ColumnMatmul>& matmuls, size_t change, size_t input, int threads) {
  const auto constant_of = [&](const ColumnMatmul& matmul) -> const Tensor& {
    return *matmul.changes[change]->input(input)->constant();
  };
  const Tensor& first = constant_of(matmuls[0]);
  const auto is_first = [&](const ColumnMatmul& matmul) { return identical(constant_of(matmul), first); };
  if (first.volume() == 1 && std::ranges::all_of(matmuls, is_first)) return first;
  std::vector<Tensor> rows;
  for (const ColumnMatmul& matmul : matmuls) {
    rows.push_back(constant_of(matmul));
    if (first.volume() != 1) continue;
    LATHE_ASSIGN(Tensor dims, Tensor::allocate(DType::i64, {1}));
    from_ints({&matmul.columns, 1}, dims);
    LATHE_ASSIGN(const std::vector<Tensor> copies, run_op(ExpandAttrs{}, std::array{rows.back(), dims}, 1));
    rows.back() = copies[0];
  }
  return joined(rows, static_cast<size_t>(rows[0].rank() - 1), threads);
}

Value* merged(Rewrite& r, const std::vector<ColumnMatmul>& matmuls) {
  const ColumnMatmul& first = matmuls[0];
  std::vector<Value*> weights;
  for (size_t i = 0; i < first.weights.size(); ++i) {
    std::vector<Tensor> parts;
    for (const ColumnMatmul& matmul : matmuls) parts.push_back(*matmul.weights[i]);
    weights.push_back(r.constant(joined(parts, first.axis, r.context.threads)));
  }
  for (const ColumnMatmul& matmul : matmuls) {
    r.absorb(matmul.matmul);
    for (const Node* change : matmul.changes) r.absorb(change);
  }
  Value* w = first.packed ? r.add(first.packed->attributes(), std::move(weights)) : weights[0];
  Value* y = r.add(r.node->attributes(), {r.input(0), w});
  for (size_t i = 0; i < first.changes.size(); ++i) {
    std::vector<Value*> inputs{y};
    for (size_t k = 1; k < first.changes[i]->num_inputs(); ++k)
      inputs.push_back(r.constant(joined_constants(matmuls, i, k, r.context.threads)));
    y = r.add(first.changes[i]->attributes(), std::move(inputs));
  }
  return y;
}

// The first of them in the graph's order is the first that is asked, so that the new nodes come before all readers.
Result<bool> merge(Rewrite& r) {
  const std::optional<ColumnMatmul> first = moved_matmul_of(r.node, r.context);
  if (!first) return false;
  const std::vector<ColumnMatmul> matmuls = matmuls_like(*first, r.context);
  if (matmuls.size() < 2) return false;
  Value* y = merged(r, matmuls);
  int64_t column = 0;
  for (const ColumnMatmul& matmul : matmuls) {
    Value* part = r.slice(y, -1, column, column + matmul.columns);
    column += matmul.columns;
    if (r.failed()) return false;
    LATHE_TRY(r.graph().replace_uses(matmul.result, part));
  }
  return true;
}

// The product by those columns in turn: `parts` are the matrices, of as many columns, or the one of both halves.
Value* paired(Rewrite& r, const std::vector<ColumnMatmul>& parts) {
  const ColumnMatmul& first = parts[0];
  std::vector<Value*> weights;
  for (size_t i = 0; i < first.weights.size(); ++i) {
    std::vector<Tensor> tensors;
    for (const ColumnMatmul& part : parts) tensors.push_back(*part.weights[i]);
    weights.push_back(r.constant(joined_in_turns(tensors, first.axis, r.context.threads)));
  }
  for (size_t i = 1; i < parts.size(); ++i) r.absorb(parts[i].matmul);
  std::vector<Value*> operands = r.node->inputs();
  operands[1] = first.packed ? r.add(first.packed->attributes(), std::move(weights)) : weights[0];
  return r.add(r.node->attributes(), std::move(operands));
}

// `biases`: what is added to each, or none.
Result<bool> replace_by_turns(Rewrite& r, Value* y, const Halves& halves, std::span<const Tensor> biases = {}) {
  for (size_t i = 0; i < halves.size(); ++i) {
    const auto start = static_cast<int64_t>(i);
    Value* part = r.add(SliceAttrs{}, {y, r.ints({start}), r.ints({INT64_MAX}), r.ints({-1}), r.ints({2})});
    if (!biases.empty()) part = r.plus(part, r.constant(biases[i]));
    if (r.failed()) return false;
    LATHE_TRY(r.graph().replace_uses(halves[i], part));
  }
  return true;
}

Result<bool> pair(Rewrite& r) {
  const std::optional<ColumnMatmul> a = constant_matmul_of(r.node, r.context);
  const Node* meeting = a && !multiplies_levels(*r.node) ? meeting_point(a->result) : nullptr;
  if (!meeting) return false;
  for (const ir::Use& use : r.input(0)->uses()) {
    if (use.index != 0 || use.node == r.node) continue;
    const std::optional<ColumnMatmul> b = constant_matmul_of(use.node, r.context);
    if (!b || b->columns != a->columns || !are_alike(*a, *b, r.context) || meeting_point(b->result) != meeting)
      continue;
    return replace_by_turns(r, paired(r, {*a, *b}), {a->result, b->result});
  }
  return false;
}

Result<bool> pair_halves(Rewrite& r) {
  const std::optional<ColumnMatmul> both = changed_matmul_of(r.node, r.context);
  const std::optional<Halves> halves = both && !multiplies_levels(*r.node) ? meeting_halves(*both) : std::nullopt;
  if (!halves) return false;
  std::vector<Tensor> biases;
  if (!both->changes.empty()) {
    SplitAttrs in_halves;
    in_halves.axis = 0;
    LATHE_ASSIGN(biases, run_op(in_halves, std::array{*both->changes[0]->input(1)->constant()}, 2));
    r.absorb(both->changes[0]);
  }
  return replace_by_turns(r, paired(r, {*both}), *halves, biases);
}

}  // namespace

Result<bool> merge_matmuls(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"matmul(x, v) = slice(matmul(x, [v w])); matmul(x, w) likewise", OpKind::matmul, merge},
  };
  static constexpr Rule pairs[] = {
      {"f(matmul(x, v)) * matmul(x, w) = f(y[0::2]) * y[1::2], y = matmul(x, [v0 w0 v1 w1 ...])", OpKind::matmul, pair},
      {"f(y[:n]) * y[n:] = f(z[0::2]) * z[1::2], y = matmul(x, [v w]), z as above", OpKind::matmul, pair_halves},
      {"pairs of products by matrices of experts likewise", OpKind::expert_matmul, pair},
      {"and halves of one", OpKind::expert_matmul, pair_halves},
  };
  bool changed = false;
  if (!context.arithmetic.separate_matmuls) {
    LATHE_ASSIGN(changed, apply_rules(graph, context, rules));
  }
  if (!context.arithmetic.paired_columns) return changed;
  LATHE_ASSIGN(const bool is_paired, apply_rules(graph, context, pairs));
  return changed || is_paired;
}

}  // namespace lathe
