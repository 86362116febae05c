// SPDX-License-Identifier: Apache-2.0
#include "passes/einsum_to_matmul.h"

#include <algorithm>

#include "ops/rules.h"
#include "ops/subscripts.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Value;
using Labels = std::vector<Label>;

constexpr int kMostSteps = 16;  // between a product and its softmax

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// Whether scores may pass the node on their way to a softmax, or probabilities behind it.
bool passes_scores(const ir::Node& node) {
  return node.has_trait(kView) || node.is(OpKind::cast) || node.is(OpKind::elementwise) || node.is(OpKind::select) ||
         node.is(OpKind::transpose) || is(&node, ActivationOp::tanh);
}

bool leads_to_softmax(const Value* value) {
  for (int step = 0; step < kMostSteps; ++step) {
    const ir::Node* next = nullptr;
    for (const ir::Use& use : value->uses()) {
      if (use.node->is(OpKind::softmax)) return true;
      if (!next && passes_scores(*use.node)) next = use.node;
    }
    if (!next) return false;
    value = next->output();
  }
  return false;
}

bool comes_from_softmax(const Value* value) {
  for (int step = 0; step < kMostSteps && value->producer(); ++step) {
    const ir::Node* node = value->producer();
    if (node->is(OpKind::softmax)) return true;
    if (!passes_scores(*node)) return false;
    value = node->input(node->is(OpKind::select) ? node->num_inputs() - 1 : 0);
  }
  return false;
}

// The dimensions of `from` in the order of `to`, but for those that it lacks.
Ints permutation(const Labels& from, const Labels& to) {
  Ints perm;
  for (const Label label : to)
    if (has(from, label)) perm.push_back(std::find(from.begin(), from.end(), label) - from.begin());
  return perm;
}

bool is_identity(const Ints& perm) { return std::is_sorted(perm.begin(), perm.end()); }

Labels plus(Labels labels, std::initializer_list<Label> more) {
  labels.insert(labels.end(), more);
  return labels;
}

// One way to say an einsum as a product of matrices.
struct Product {
  size_t left = 0;  // the operand that has the rows
  Labels batch;     // in the order of the result; an operand that lacks one is repeated along it
  Label row = 0, column = 0, summed = 0;

  Labels matrices(size_t operand, bool transposed) const {
    const Label outer = operand == left ? row : column;
    return (operand == left) != transposed ? plus(batch, {outer, summed}) : plus(batch, {summed, outer});
  }
  Labels result() const { return plus(batch, {row, column}); }

  // Of transposes that are not part of a product; what follows may take one of the result.
  int cost(const Subscripts& s) const {
    int cost = is_identity(permutation(result(), s.output)) ? 0 : 1;
    for (size_t i = 0; i < 2; ++i)
      if (!is_identity(permutation(s.operands[i], matrices(i, false))) &&
          !is_identity(permutation(s.operands[i], matrices(i, true))))
        cost += 2;
    return cost;
  }
};

std::optional<Product> best_product(const Subscripts& s) {
  const Labels &a = s.operands[0], &b = s.operands[1];
  Labels summed, own[2];
  for (const Labels* labels : {&a, &b})
    for (const Label label : *labels)
      if (std::count(labels->begin(), labels->end(), label) > 1) return std::nullopt;
  for (const Label label : a)
    if (has(s.output, label)) {
      if (!has(b, label)) own[0].push_back(label);
    } else if (has(b, label)) {
      summed.push_back(label);
    } else {
      return std::nullopt;
    }
  for (const Label label : b)
    if (!has(a, label)) {
      if (!has(s.output, label)) return std::nullopt;
      own[1].push_back(label);
    }
  std::optional<Product> best;
  for (size_t left = 0; left < 2 && summed.size() == 1; ++left)
    for (const Label row : own[left])
      for (const Label column : own[1 - left]) {
        Product product{left, {}, row, column, summed[0]};
        for (const Label label : s.output)
          if (label != row && label != column) product.batch.push_back(label);
        if (!best || product.cost(s) < best->cost(s)) best = std::move(product);
      }
  return best;
}

// The operand's matrices, with dimensions of 1 where it lacks one of the batch.
Value* matrices_of(Rewrite& r, const Product& product, const Labels& labels, size_t operand, bool transposed) {
  const Labels wanted = product.matrices(operand, transposed);
  const Ints perm = permutation(labels, wanted);
  Value* x = r.input(operand);
  if (!is_identity(perm)) x = r.transpose(x, perm);
  Ints lacking;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!has(labels, wanted[i])) lacking.push_back(static_cast<int64_t>(i));
  return lacking.empty() ? x : r.unsqueeze(x, lacking);
}

}  // namespace

Result<bool> einsum_to_matmul(Rewrite& r) {
  if (r.node->num_inputs() != 2 || !is_floating(r.output()->dtype())) return false;
  if (!leads_to_softmax(r.output()) && !comes_from_softmax(r.input(0)) && !comes_from_softmax(r.input(1))) return false;
  const Result<Subscripts> subscripts =
      parse_subscripts(r.node->attrs<EinsumAttrs>().equation, {r.input(0)->rank(), r.input(1)->rank()});
  const std::optional<Product> product = subscripts ? best_product(*subscripts) : std::nullopt;
  if (!product) return false;
  const size_t left = product->left, right = 1 - left;
  const auto extent = [&](size_t operand) {
    const Labels& labels = subscripts->operands[operand];
    const auto at = std::find(labels.begin(), labels.end(), product->summed) - labels.begin();
    return r.input(operand)->shape()[static_cast<size_t>(at)];
  };
  if (extent(0) != extent(1)) return false;  // one of them may broadcast
  // Columns that lie in rows stay there.
  const Labels& labels = subscripts->operands[right];
  const bool transposed = std::find(labels.begin(), labels.end(), product->summed) >
                          std::find(labels.begin(), labels.end(), product->column);
  Value* a = matrices_of(r, *product, subscripts->operands[left], left, /*transposed=*/false);
  Value* b = matrices_of(r, *product, labels, right, transposed);
  Value* y = r.matmul(a, b, {.b = transposed});
  const Ints perm = permutation(product->result(), subscripts->output);
  return r.finish(is_identity(perm) ? y : r.transpose(y, perm));
}

}  // namespace lathe
