// SPDX-License-Identifier: Apache-2.0
#include "passes/column_matmul.h"

#include <algorithm>

#include "passes/match.h"
#include "passes/pins.h"
#include "passes/stays_packed.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kVector = 8;  // elements that kernels read at once

// Of w, which nothing else reads, the constants that it is or is made of; empty = others.
std::vector<const Tensor*> weights_of(const Value* w, const Node* packed) {
  if (!w->has_single_use()) return {};
  if (!packed) return w->constant() ? std::vector{w->constant()} : std::vector<const Tensor*>();
  std::vector<const Tensor*> tensors;
  for (const Value* input : packed->inputs())
    if (input) tensors.push_back(input->constant());
  return tensors;
}

// Where w has its columns, if it is such a product.
std::optional<size_t> columns_axis(const Node& node) {
  if (node.is(OpKind::matmul) && node.input(1)->rank() == 2 && !node.attrs<MatmulAttrs>().transpose_a)
    return node.attrs<MatmulAttrs>().transpose_b ? 0 : 1;
  if (node.is(OpKind::expert_matmul)) return node.attrs<ExpertMatmulAttrs>().transpose_w ? 1 : 2;
  return std::nullopt;
}

bool is_level(DType type) { return is_byte_integer(type) || is_factor_float8(type); }

// The constants that change each column of the value alone, if the node does no more than that with it: those of its
// inputs behind the first.
std::optional<std::vector<const Tensor*>> column_constants(const Node& node, const Value* value, int64_t columns) {
  std::vector<const Tensor*> constants;
  if (node.num_outputs() != 1 || node.input(0) != value || node.output()->shape() != value->shape())
    return std::nullopt;
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    const Tensor* constant = node.input(i) ? node.input(i)->constant() : nullptr;
    if (!constant || (constant->volume() != 1 && (constant->volume() != columns || constant->dims().back() != columns)))
      return std::nullopt;
    constants.push_back(constant);
  }
  return constants;
}

bool may_change_columns(const Node& node, bool of_levels) {
  if (is(&node, ElementwiseOp::add)) return true;
  const bool has_blocks = node.is(OpKind::dequantize) && !node.attrs<DequantizeAttrs>().blocks.empty();
  return of_levels && !has_blocks &&
         (is(&node, ElementwiseOp::mul) || node.is(OpKind::cast) || node.is(OpKind::dequantize));
}

// Whether a node can do for both what each does for its columns.
bool are_alike(const Node& a, const Node& b) {
  if (!equal(a.attributes(), b.attributes()) || a.num_inputs() != b.num_inputs()) return false;
  for (size_t i = 1; i < a.num_inputs(); ++i) {
    const Tensor &one = *a.input(i)->constant(), &other = *b.input(i)->constant();
    if (one.dtype() != other.dtype() || one.rank() != other.rank() || (one.volume() == 1) != (other.volume() == 1))
      return false;
  }
  return true;
}

}  // namespace

std::optional<ColumnMatmul> constant_matmul_of(Node* node, const PassContext& context) {
  const std::optional<size_t> axis = columns_axis(*node);
  if (!axis) return std::nullopt;
  const Value* w = node->input(1);
  const Node* producer = w->producer();
  const Node* packed = producer && stays_packed(*producer, context.arithmetic) ? producer : nullptr;
  const std::vector<const Tensor*> weights = weights_of(w, packed);
  if (weights.empty() || node->input(0)->constant() || node->input(0)->rank() < 2 ||
      !(is_floating(w->dtype()) || is_level(w->dtype())))
    return std::nullopt;
  const int64_t columns = weights[0]->dims()[*axis];
  for (const Tensor* tensor : weights)  // a scale for all columns is none for those of another matrix
    if (tensor->rank() != w->rank() || tensor->dims()[*axis] != columns) return std::nullopt;
  if (columns % kVector != 0) return std::nullopt;
  return ColumnMatmul{node, *axis, packed, weights, {}, node->output(), columns};
}

std::optional<ColumnMatmul> changed_matmul_of(Node* node, const PassContext& context) {
  std::optional<ColumnMatmul> found = constant_matmul_of(node, context);
  if (!found || !node->is(OpKind::matmul)) return found;
  const bool of_levels = multiplies_levels(*node);
  while (found->result->has_single_use() && !found->result->is_graph_output() &&
         (of_levels || found->changes.empty())) {
    Node* next = found->result->uses()[0].node;
    const auto constants =
        may_change_columns(*next, of_levels) ? column_constants(*next, found->result, found->columns) : std::nullopt;
    const bool is_row = constants && constants->size() == 1 && (*constants)[0]->dims() == Dims{found->columns};
    if (!constants || (!of_levels && !is_row)) break;
    found->changes.push_back(next);
    found->result = next->output();
  }
  return found;
}

bool multiplies_levels(const Node& matmul) { return is_level(matmul.input(1)->dtype()); }

bool are_alike(const ColumnMatmul& a, const ColumnMatmul& b, PassContext& context) {
  const std::optional<DType> pin = pinned_precision(*a.matmul, context);
  std::vector<Node*> nodes{b.matmul};
  nodes.insert(nodes.end(), a.changes.begin(), a.changes.end());
  nodes.insert(nodes.end(), b.changes.begin(), b.changes.end());
  for (const Node* node : nodes)
    if (pinned_precision(*node, context) != pin) return false;
  if (!equal(a.matmul->attributes(), b.matmul->attributes()) || a.weights.size() != b.weights.size() ||
      !a.packed != !b.packed || a.changes.size() != b.changes.size())
    return false;
  for (size_t i = 0; i < a.changes.size(); ++i)
    if (!are_alike(*a.changes[i], *b.changes[i])) return false;
  for (size_t i = 2; i < a.matmul->num_inputs(); ++i)
    if (a.matmul->input(i) != b.matmul->input(i)) return false;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    Dims dims = b.weights[i]->dims();
    dims[a.axis] = a.columns;
    if (a.weights[i]->dtype() != b.weights[i]->dtype() || a.weights[i]->dims() != dims) return false;
  }
  return !a.packed || equal(a.packed->attributes(), b.packed->attributes());
}

}  // namespace lathe
