// SPDX-License-Identifier: Apache-2.0
// Horizontal fusion: matmuls of one value by several constants become one, whose columns are cut apart. So queries,
// keys and values take one launch, which reads what they are made of once. Two that meet in an expression, as a gate
// and what it gates, alternate column by column: a kernel has both numbers that make one of the result's.
#include <algorithm>

#include "passes/match.h"
#include "passes/pins.h"
#include "passes/rewrite.h"
#include "passes/stays_packed.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kVector = 8;  // elements that kernels read at once

// x w + bias, of which the sum's elements are only moved afterwards.
struct BiasedMatmul {
  Node* matmul;
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

// By weights that are known, in whole vectors of columns. A weight that others read, too, would be in memory twice.
std::optional<BiasedMatmul> constant_matmul_of(Node* node, const PassContext& context) {
  if (!node->is(OpKind::matmul) || node->attrs<MatmulAttrs>().transpose_a) return std::nullopt;
  const Value* w = node->input(1);
  const Node* producer = w->producer();
  const Node* packed = producer && stays_packed(*producer, context.arithmetic) ? producer : nullptr;
  const std::vector<const Tensor*> weights = weights_of(w, packed);
  if (weights.empty() || node->input(0)->constant() || node->input(0)->rank() < 2 || w->rank() != 2 ||
      !is_floating(w->dtype()))
    return std::nullopt;
  const size_t axis = node->attrs<MatmulAttrs>().transpose_b ? 0 : 1;
  const int64_t columns = weights[0]->dims()[axis];
  for (const Tensor* tensor : weights)  // a scale for all columns is none for those of another matrix
    if (tensor->rank() != 2 || tensor->dims()[axis] != columns) return std::nullopt;
  if (columns % kVector != 0) return std::nullopt;
  return BiasedMatmul{node, packed, weights, nullptr, node->output(), columns};
}

std::optional<BiasedMatmul> moved_matmul_of(Node* node, const PassContext& context) {
  std::optional<BiasedMatmul> found = constant_matmul_of(node, context);
  if (!found) return std::nullopt;
  BiasedMatmul& biased = *found;
  if (biased.result->has_single_use()) {
    const Node* add = biased.result->uses()[0].node;
    Value* bias = is(add, ElementwiseOp::add) ? add->input(1) : nullptr;
    const bool is_row = bias && bias->constant() && bias->rank() == 1 && bias->constant()->volume() == biased.columns;
    if (is_row) biased.bias = bias, biased.result = add->output();
  }
  return is_only_moved(biased.result) ? found : std::nullopt;
}

// Whether one matmul can be both. Each new node stands for all layers that go, so one precision must be pinned for all.
bool are_alike(const BiasedMatmul& a, const BiasedMatmul& b, PassContext& context) {
  const std::optional<DType> pin = pinned_precision(*a.matmul, context);
  for (const Node* node : {a.result->producer(), b.matmul, b.result->producer()})
    if (pinned_precision(*node, context) != pin) return false;
  if (!equal(a.matmul->attributes(), b.matmul->attributes()) || a.weights.size() != b.weights.size() ||
      !a.packed != !b.packed || !a.bias != !b.bias)
    return false;
  for (size_t i = 0; i < a.weights.size(); ++i)
    if (a.weights[i]->dtype() != b.weights[i]->dtype()) return false;
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

Result<Tensor> joined(const std::vector<Tensor>& tensors, int64_t axis) {
  ConcatAttrs attrs;
  attrs.axis = axis;
  LATHE_ASSIGN(const std::vector<Tensor> results, run_op(attrs, tensors, 1));
  return results[0];
}

Value* merged(Rewrite& r, const std::vector<BiasedMatmul>& matmuls) {
  const auto& attrs = r.node->attrs<MatmulAttrs>();
  std::vector<Value*> weights;
  for (size_t i = 0; i < matmuls[0].weights.size(); ++i) {
    std::vector<Tensor> parts;
    for (const BiasedMatmul& biased : matmuls) parts.push_back(*biased.weights[i]);
    weights.push_back(r.constant(joined(parts, attrs.transpose_b ? 0 : 1)));
  }
  std::vector<Tensor> biases;
  for (const BiasedMatmul& biased : matmuls) {
    if (biased.bias) biases.push_back(*biased.bias->constant());
    r.absorb(biased.matmul);
    r.absorb(biased.result->producer());
  }
  Value* w = matmuls[0].packed ? r.add(matmuls[0].packed->attributes(), std::move(weights)) : weights[0];
  Value* y = r.add(attrs, {r.input(0), w});
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

// Columns of both in turn: [k, n] and [k, n] become [k, 2 n]; [n, k] likewise.
Result<Tensor> alternating(const Tensor& a, const Tensor& b, int64_t axis) {
  Dims dims = a.dims();
  std::vector<Tensor> parts = {a, b};
  for (Tensor& part : parts) {
    Dims columns = dims;
    columns.insert(columns.begin() + axis + 1, 1);
    part = part.reshaped(columns);
  }
  LATHE_ASSIGN(const Tensor both, joined(parts, axis + 1));
  dims[static_cast<size_t>(axis)] *= 2;
  return both.reshaped(dims);
}

Value* paired(Rewrite& r, const BiasedMatmul& a, const BiasedMatmul& b) {
  const auto& attrs = r.node->attrs<MatmulAttrs>();
  std::vector<Value*> weights;
  for (size_t i = 0; i < a.weights.size(); ++i)
    weights.push_back(r.constant(alternating(*a.weights[i], *b.weights[i], attrs.transpose_b ? 0 : 1)));
  r.absorb(b.matmul);
  Value* w = a.packed ? r.add(a.packed->attributes(), std::move(weights)) : weights[0];
  return r.add(attrs, {r.input(0), w});
}

Result<bool> pair(Rewrite& r) {
  const std::optional<BiasedMatmul> a = constant_matmul_of(r.node, r.context);
  const Node* meeting = a ? meeting_point(a->result) : nullptr;
  if (!meeting) return false;
  for (const ir::Use& use : r.input(0)->uses()) {
    if (use.index != 0 || use.node == r.node) continue;
    const std::optional<BiasedMatmul> b = constant_matmul_of(use.node, r.context);
    if (!b || b->columns != a->columns || !are_alike(*b, *a, r.context) || meeting_point(b->result) != meeting)
      continue;
    Value* y = paired(r, *a, *b);
    for (const auto& [result, first] : {std::pair(a->result, 0), std::pair(b->result, 1)}) {
      Value* part = r.add(SliceAttrs{}, {y, r.ints({first}), r.ints({INT64_MAX}), r.ints({-1}), r.ints({2})});
      if (r.failed()) return false;
      LATHE_TRY(r.graph().replace_uses(result, part));
    }
    return true;
  }
  return false;
}

}  // namespace

Result<bool> merge_matmuls(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"matmul(x, v) = slice(matmul(x, [v w])); matmul(x, w) likewise", OpKind::matmul, merge},
  };
  static constexpr Rule pairs[] = {
      {"f(matmul(x, v)) * matmul(x, w) = f(y[0::2]) * y[1::2], y = matmul(x, [v0 w0 v1 w1 ...])", OpKind::matmul, pair},
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
