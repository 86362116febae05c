// SPDX-License-Identifier: Apache-2.0
// Horizontal fusion: matmuls of one value by several constants become one, whose columns are cut apart. So queries,
// keys and values take one launch, which reads what they are made of once. Two that meet in an expression, as a gate
// and what it gates, alternate column by column, those of experts as well: a kernel has both numbers that make one of
// the result's.
#include <algorithm>
#include <array>

#include "passes/match.h"
#include "passes/pins.h"
#include "passes/rewrite.h"
#include "passes/stays_packed.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kVector = 8;  // elements that kernels read at once

// x w + bias, of which the sum's elements are only moved afterwards; or x by matrices w of experts.
struct BiasedMatmul {
  Node* matmul;
  size_t axis;                         // of w: its columns
  const Node* packed;                  // what dequantises w, if it stays packed; null = w is constant
  std::vector<const Tensor*> weights;  // w, or levels, scales and zero points
  Value* bias;                         // null = none
  Value* result;
  int64_t columns;
};

// Of w, which nothing else reads, the constants that it is or is made of; empty = others.
std::vector<const Tensor*> weights_of(const Value* w, const Node* packed) {
  if (!w->has_single_use()) return {};
  if (!packed) return w->constant() ? std::vector{w->constant()} : std::vector<const Tensor*>();
  std::vector<const Tensor*> tensors;
  for (const Value* input : packed->inputs())
    if (input) tensors.push_back(input->constant());
  return tensors;
}

// Whether what follows is no computation that the matmul's kernel could take in.
bool is_only_moved(const Value* value) {
  return !value->is_graph_output() && !value->uses().empty() &&
         std::all_of(value->uses().begin(), value->uses().end(),
                     [](const ir::Use& use) { return use.node->has_trait(kView | kStrided); });
}

// Where w has its columns, if it is such a product.
std::optional<size_t> columns_axis(const Node& node) {
  if (node.is(OpKind::matmul) && node.input(1)->rank() == 2 && !node.attrs<MatmulAttrs>().transpose_a)
    return node.attrs<MatmulAttrs>().transpose_b ? 0 : 1;
  if (node.is(OpKind::expert_matmul)) return node.attrs<ExpertMatmulAttrs>().transpose_w ? 1 : 2;
  return std::nullopt;
}

// By weights that are known, in whole vectors of columns. A weight that others read, too, would be in memory twice.
std::optional<BiasedMatmul> constant_matmul_of(Node* node, const PassContext& context) {
  const std::optional<size_t> axis = columns_axis(*node);
  if (!axis) return std::nullopt;
  const Value* w = node->input(1);
  const Node* producer = w->producer();
  const Node* packed = producer && stays_packed(*producer, context.arithmetic) ? producer : nullptr;
  const std::vector<const Tensor*> weights = weights_of(w, packed);
  if (weights.empty() || node->input(0)->constant() || node->input(0)->rank() < 2 || !is_floating(w->dtype()))
    return std::nullopt;
  const int64_t columns = weights[0]->dims()[*axis];
  for (const Tensor* tensor : weights)  // a scale for all columns is none for those of another matrix
    if (tensor->rank() != w->rank() || tensor->dims()[*axis] != columns) return std::nullopt;
  if (columns % kVector != 0) return std::nullopt;
  return BiasedMatmul{node, *axis, packed, weights, nullptr, node->output(), columns};
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
std::optional<Halves> meeting_halves(const BiasedMatmul& both) {
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

// With the constant row that is added, if there is one.
std::optional<BiasedMatmul> biased_matmul_of(Node* node, const PassContext& context) {
  std::optional<BiasedMatmul> found = constant_matmul_of(node, context);
  if (!found || !node->is(OpKind::matmul) || !found->result->has_single_use()) return found;
  const Node* add = found->result->uses()[0].node;
  Value* bias = is(add, ElementwiseOp::add) ? add->input(1) : nullptr;
  const bool is_row = bias && bias->constant() && bias->rank() == 1 && bias->constant()->volume() == found->columns;
  if (is_row) found->bias = bias, found->result = add->output();
  return found;
}

std::optional<BiasedMatmul> moved_matmul_of(Node* node, const PassContext& context) {
  const std::optional<BiasedMatmul> found = biased_matmul_of(node, context);
  if (!found || !node->is(OpKind::matmul)) return std::nullopt;
  const BiasedMatmul& biased = *found;
  const bool is_for_pairs = context.arithmetic.paired_columns && (alternates(*biased.result) || meeting_halves(biased));
  return is_only_moved(biased.result) && !is_for_pairs ? found : std::nullopt;
}

// Whether one matmul can be both. Each new node stands for all layers that go, so one precision must be pinned for all.
bool are_alike(const BiasedMatmul& a, const BiasedMatmul& b, PassContext& context) {
  const std::optional<DType> pin = pinned_precision(*a.matmul, context);
  for (const Node* node : {a.result->producer(), b.matmul, b.result->producer()})
    if (pinned_precision(*node, context) != pin) return false;
  if (!equal(a.matmul->attributes(), b.matmul->attributes()) || a.weights.size() != b.weights.size() ||
      !a.packed != !b.packed || !a.bias != !b.bias)
    return false;
  for (size_t i = 2; i < a.matmul->num_inputs(); ++i)
    if (a.matmul->input(i) != b.matmul->input(i)) return false;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    Dims dims = b.weights[i]->dims();
    dims[a.axis] = a.columns;
    if (a.weights[i]->dtype() != b.weights[i]->dtype() || a.weights[i]->dims() != dims) return false;
  }
  return !a.packed || equal(a.packed->attributes(), b.packed->attributes());
}

// Those of the same left operand, in the order of their uses.
std::vector<BiasedMatmul> matmuls_like(const BiasedMatmul& first, PassContext& context) {
  std::vector<BiasedMatmul> matmuls;
  for (const ir::Use& use : first.matmul->input(0)->uses())
    if (const std::optional<BiasedMatmul> other = use.index == 0 ? moved_matmul_of(use.node, context) : std::nullopt)
      if (are_alike(*other, first, context)) matmuls.push_back(*other);
  return matmuls;
}

Result<Tensor> joined(const std::vector<Tensor>& tensors, size_t axis) {
  ConcatAttrs attrs;
  attrs.axis = static_cast<int64_t>(axis);
  LATHE_ASSIGN(const std::vector<Tensor> results, run_op(attrs, tensors, 1));
  return results[0];
}

Value* merged(Rewrite& r, const std::vector<BiasedMatmul>& matmuls) {
  std::vector<Value*> weights;
  for (size_t i = 0; i < matmuls[0].weights.size(); ++i) {
    std::vector<Tensor> parts;
    for (const BiasedMatmul& biased : matmuls) parts.push_back(*biased.weights[i]);
    weights.push_back(r.constant(joined(parts, matmuls[0].axis)));
  }
  std::vector<Tensor> biases;
  for (const BiasedMatmul& biased : matmuls) {
    if (biased.bias) biases.push_back(*biased.bias->constant());
    r.absorb(biased.matmul);
    r.absorb(biased.result->producer());
  }
  Value* w = matmuls[0].packed ? r.add(matmuls[0].packed->attributes(), std::move(weights)) : weights[0];
  Value* y = r.add(r.node->attributes(), {r.input(0), w});
  return biases.empty() ? y : r.plus(y, r.constant(joined(biases, 0)));
}

// The first of them in the graph's order is the first that is asked, so that the new nodes come before all readers.
Result<bool> merge(Rewrite& r) {
  const std::optional<BiasedMatmul> first = moved_matmul_of(r.node, r.context);
  if (!first) return false;
  const std::vector<BiasedMatmul> matmuls = matmuls_like(*first, r.context);
  if (matmuls.size() < 2) return false;
  Value* y = merged(r, matmuls);
  int64_t column = 0;
  for (const BiasedMatmul& biased : matmuls) {
    Value* part = r.slice(y, -1, column, column + biased.columns);
    column += biased.columns;
    if (r.failed()) return false;
    LATHE_TRY(r.graph().replace_uses(biased.result, part));
  }
  return true;
}

// The columns of two halves in turn: [k, 2 n] as it was [k, 2, n] becomes [k, n, 2].
Result<Tensor> in_turns(const Tensor& halves, size_t axis) {
  const Dims& dims = halves.dims();
  Dims apart = dims;
  apart[axis] /= 2;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), 2);
  TransposeAttrs swap;
  for (size_t i = 0; i < apart.size(); ++i) swap.perm.push_back(static_cast<int64_t>(i));
  std::swap(swap.perm[axis], swap.perm[axis + 1]);
  LATHE_ASSIGN(const std::vector<Tensor> results, run_op(swap, std::vector{halves.reshaped(apart)}, 1));
  return results[0].reshaped(dims);
}

// The product by those columns in turn: `parts` are the matrices, of as many columns, or the one of both halves.
Value* paired(Rewrite& r, const std::vector<BiasedMatmul>& parts) {
  const BiasedMatmul& first = parts[0];
  std::vector<Value*> weights;
  for (size_t i = 0; i < first.weights.size(); ++i) {
    std::vector<Tensor> tensors;
    for (const BiasedMatmul& part : parts) tensors.push_back(*part.weights[i]);
    const Result<Tensor> halves = joined(tensors, first.axis);
    weights.push_back(r.constant(halves ? in_turns(*halves, first.axis) : halves));
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
  const std::optional<BiasedMatmul> a = constant_matmul_of(r.node, r.context);
  const Node* meeting = a ? meeting_point(a->result) : nullptr;
  if (!meeting) return false;
  for (const ir::Use& use : r.input(0)->uses()) {
    if (use.index != 0 || use.node == r.node) continue;
    const std::optional<BiasedMatmul> b = constant_matmul_of(use.node, r.context);
    if (!b || b->columns != a->columns || !are_alike(*a, *b, r.context) || meeting_point(b->result) != meeting)
      continue;
    return replace_by_turns(r, paired(r, {*a, *b}), {a->result, b->result});
  }
  return false;
}

Result<bool> pair_halves(Rewrite& r) {
  const std::optional<BiasedMatmul> both = biased_matmul_of(r.node, r.context);
  const std::optional<Halves> halves = both ? meeting_halves(*both) : std::nullopt;
  if (!halves) return false;
  std::vector<Tensor> biases;
  if (both->bias) {
    SplitAttrs in_halves;
    in_halves.axis = 0;
    LATHE_ASSIGN(biases, run_op(in_halves, std::array{*both->bias->constant()}, 2));
    r.absorb(both->result->producer());
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
