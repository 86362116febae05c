// SPDX-License-Identifier: Apache-2.0
// Horizontal fusion: matmuls of one value by several constants become one, whose columns are cut apart. So queries,
// keys and values take one launch, which reads what they are made of once.
#include <algorithm>

#include "passes/match.h"
#include "passes/pins.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kVector = 8;  // elements that kernels read at once

// x w + bias, of which the sum's elements are only moved afterwards.
struct BiasedMatmul {
  Node* matmul;
  Value* bias;  // null = none
  Value* result;
  int64_t columns;
};

const Tensor& weight(const BiasedMatmul& biased) { return *biased.matmul->input(1)->constant(); }

// Whether what follows is no computation that the matmul's kernel could take in.
bool is_only_moved(const Value* value) {
  return !value->is_graph_output() && !value->uses().empty() &&
         std::all_of(value->uses().begin(), value->uses().end(),
                     [](const ir::Use& use) { return use.node->has_trait(kView | kStrided); });
}

// A weight that others read, too, would be in memory twice.
std::optional<BiasedMatmul> moved_matmul_of(Node* node) {
  if (!node->is(OpKind::matmul) || node->attrs<MatmulAttrs>().transpose_a) return std::nullopt;
  const Tensor* constant = node->input(1)->constant();
  if (!constant || constant->rank() != 2 || !node->input(1)->has_single_use() || node->input(0)->constant() ||
      node->input(0)->rank() < 2 || !is_floating(constant->dtype()))
    return std::nullopt;
  const bool transposed = node->attrs<MatmulAttrs>().transpose_b;
  BiasedMatmul biased{node, nullptr, node->output(), constant->dims()[transposed ? 0 : 1]};
  if (biased.result->has_single_use()) {
    const Node* add = biased.result->uses()[0].node;
    Value* bias = is(add, ElementwiseOp::add) ? add->input(1) : nullptr;
    const bool is_row = bias && bias->constant() && bias->rank() == 1 && bias->constant()->volume() == biased.columns;
    if (is_row) biased.bias = bias, biased.result = add->output();
  }
  const bool keeps_vectors = biased.columns % kVector == 0;
  return keeps_vectors && is_only_moved(biased.result) ? std::optional(biased) : std::nullopt;
}

// Whether one matmul can be both. Each new node stands for all layers that go, so one precision must be pinned for all.
bool are_alike(const BiasedMatmul& a, const BiasedMatmul& b, PassContext& context) {
  const std::optional<DType> pin = pinned_precision(*a.matmul, context);
  for (const Node* node : {a.result->producer(), b.matmul, b.result->producer()})
    if (pinned_precision(*node, context) != pin) return false;
  return a.matmul->attrs<MatmulAttrs>().transpose_b == b.matmul->attrs<MatmulAttrs>().transpose_b &&
         weight(a).dtype() == weight(b).dtype() && !a.bias == !b.bias;
}

// Those of the same left operand, in the order of their uses.
std::vector<BiasedMatmul> matmuls_like(const BiasedMatmul& first, PassContext& context) {
  std::vector<BiasedMatmul> matmuls;
  for (const ir::Use& use : first.matmul->input(0)->uses())
    if (const std::optional<BiasedMatmul> other = use.index == 0 ? moved_matmul_of(use.node) : std::nullopt)
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
  std::vector<Tensor> weights, biases;
  for (const BiasedMatmul& biased : matmuls) {
    weights.push_back(weight(biased));
    if (biased.bias) biases.push_back(*biased.bias->constant());
    r.absorb(biased.matmul);
    r.absorb(biased.result->producer());
  }
  const auto& attrs = r.node->attrs<MatmulAttrs>();
  Value* y = r.add(attrs, {r.input(0), r.constant(joined(weights, attrs.transpose_b ? 0 : 1))});
  return biases.empty() ? y : r.plus(y, r.constant(joined(biases, 0)));
}

// The first of them in the graph's order is the first that is asked, so that the new nodes come before all readers.
Result<bool> merge(Rewrite& r) {
  const std::optional<BiasedMatmul> first = moved_matmul_of(r.node);
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

}  // namespace

Result<bool> merge_matmuls(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"matmul(x, v) = slice(matmul(x, [v w])); matmul(x, w) likewise", OpKind::matmul, merge},
  };
  return context.arithmetic.separate_matmuls ? Result<bool>(false) : apply_rules(graph, context, rules);
}

}  // namespace lathe
