// SPDX-License-Identifier: Apache-2.0
// Products of one value by several constants become one product, whose columns are cut apart: one launch for queries,
// keys and values, which reads what they are made of once.
#include <algorithm>

#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kVector = 8;  // elements that kernels read at once

// x w + bias, of which the sum's elements are only moved afterwards.
struct Product {
  Node* matmul;
  Value* bias;  // null = none
  Value* result;
  int64_t columns;
};

const Tensor& weight(const Product& product) { return *product.matmul->input(1)->constant(); }

// Whether what follows is no computation that the product's kernel could take in.
bool is_only_moved(const Value* value) {
  return !value->is_graph_output() && !value->uses().empty() &&
         std::all_of(value->uses().begin(), value->uses().end(),
                     [](const ir::Use& use) { return use.node->has_trait(kView | kStrided); });
}

std::optional<Product> moved_product_of(Node* node) {
  if (!node->is(OpKind::matmul) || node->attrs<MatmulAttrs>().transpose_a) return std::nullopt;
  const Tensor* constant = node->input(1)->constant();
  if (!constant || constant->rank() != 2 || node->input(0)->constant() || node->input(0)->rank() < 2 ||
      !is_floating(constant->dtype()))
    return std::nullopt;
  const bool transposed = node->attrs<MatmulAttrs>().transpose_b;
  Product product{node, nullptr, node->output(), constant->dims()[transposed ? 0 : 1]};
  if (product.result->has_single_use()) {
    const Node* add = product.result->uses()[0].node;
    Value* bias = is(add, ElementwiseOp::add) ? add->input(1) : nullptr;
    const bool is_row = bias && bias->constant() && bias->rank() == 1 && bias->constant()->volume() == product.columns;
    if (is_row) product.bias = bias, product.result = add->output();
  }
  const bool keeps_vectors = product.columns % kVector == 0;
  return keeps_vectors && is_only_moved(product.result) ? std::optional(product) : std::nullopt;
}

// Those of the same factor and kind, in the order of their uses.
std::vector<Product> products_like(const Product& first) {
  std::vector<Product> products;
  for (const ir::Use& use : first.matmul->input(0)->uses()) {
    const std::optional<Product> other = use.index == 0 ? moved_product_of(use.node) : std::nullopt;
    if (!other || other->matmul->attrs<MatmulAttrs>().transpose_b != first.matmul->attrs<MatmulAttrs>().transpose_b)
      continue;
    if (weight(*other).dtype() == weight(first).dtype() && !other->bias == !first.bias) products.push_back(*other);
  }
  return products;
}

Result<Tensor> joined(const std::vector<Tensor>& tensors, int64_t axis) {
  ConcatAttrs attrs;
  attrs.axis = axis;
  LATHE_ASSIGN(const std::vector<Tensor> results, run_op(attrs, tensors, 1));
  return results[0];
}

Value* merged(Rewrite& r, const std::vector<Product>& products) {
  std::vector<Tensor> weights, biases;
  for (const Product& product : products) {
    weights.push_back(weight(product));
    if (product.bias) biases.push_back(*product.bias->constant());
    r.absorb(product.matmul);
  }
  const auto& attrs = r.node->attrs<MatmulAttrs>();
  Value* y = r.add(attrs, {r.input(0), r.constant(joined(weights, attrs.transpose_b ? 0 : 1))});
  return biases.empty() ? y : r.plus(y, r.constant(joined(biases, 0)));
}

Result<bool> merge(Rewrite& r) {
  const std::optional<Product> first = moved_product_of(r.node);
  if (!first) return false;
  const std::vector<Product> products = products_like(*first);
  if (products.size() < 2 || products.front().matmul->input(0) != r.input(0)) return false;
  Value* y = merged(r, products);
  int64_t column = 0;
  for (const Product& product : products) {
    Value* part = r.slice(y, -1, column, column + product.columns);
    column += product.columns;
    if (r.failed()) return false;
    LATHE_TRY(r.graph().replace_uses(product.result, part));
  }
  return true;  // the nodes of the others, which come later, are left behind
}

}  // namespace

Result<bool> merge_products(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"matmul(x, v) = slice(matmul(x, [v w])); matmul(x, w) likewise", OpKind::matmul, merge},
  };
  return context.arithmetic.f32_rows ? Result<bool>(false) : apply_rules(graph, context, rules);
}

}  // namespace lathe
