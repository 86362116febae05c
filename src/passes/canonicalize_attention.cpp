// SPDX-License-Identifier: Apache-2.0
// One spelling for what stands around the softmax of an attention, so that recognize_attention looks for one.
#include <algorithm>
#include <cmath>

#include "ops/rules.h"
#include "passes/hidden_scores.h"
#include "passes/magnitude.h"
#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Op = ElementwiseOp;

// A product and what is added to a view of it.
struct Biased {
  Value* product = nullptr;
  std::vector<Value*> biases;  // in the reverse order of their additions
};

// `sum` = view(product) + biases, whose product has that shape.
bool take_apart(Value* sum, const Shape& shape, Biased& found) {
  constexpr size_t kMostBiases = 4;
  const Node* node = sum->producer();
  if (!node || !sum->has_single_use()) return false;
  if (node->has_trait(kView)) {
    found.product = node->input(0);
    return found.product->shape() == shape && found.product->has_single_use() &&
           multiplies_computed(found.product->producer());
  }
  if (!is(node, Op::add) || found.biases.size() == kMostBiases) return false;
  for (const size_t side : {0, 1}) {
    found.biases.push_back(node->input(1 - side));
    if (same_shape(node->input(side), sum) && take_apart(node->input(side), shape, found)) return true;
    found.biases.pop_back();
  }
  return false;
}

// Decomposed relative positions: biases of rows and of columns of an image are added where queries and keys have two
// dimensions each. A sum of biases that is not as large as the scores is dropped again.
Result<bool> bias_of_places(Rewrite& r) {
  Biased found;
  const Value* sum = r.input(0);
  if (!is(sum->producer(), Op::add) || !take_apart(r.input(0), r.output()->shape(), found)) return false;
  if (found.biases.size() > 1 && !r.context.fast_math) return false;
  Value* bias = found.biases.back();
  for (size_t i = found.biases.size() - 1; i > 0; --i) bias = r.plus(bias, found.biases[i - 1]);
  if (!same_shape(bias, sum)) return r.finish(r.output());
  std::vector<Value*> operands = r.node->inputs();
  operands[0] = bias;
  return r.finish(r.plus(found.product, r.add(r.node->attributes(), std::move(operands))));
}

// Through views that leave queries and keys apart, and numbers that scale all scores.
bool are_scores(const Value* value) {
  const Node* node = value->producer();
  if (!node) return false;
  if (node->has_trait(kView)) return are_scores(node->input(0));
  if (const std::optional<WithScalar> scaled = match_scaled(value)) return are_scores(scaled->x);
  return multiplies_computed(node);
}

// Through views and casts.
bool leads_to_softmax(const Value* value) {
  while (value->has_single_use()) {
    const Node* reader = value->uses()[0].node;
    if (!reader || reader->is(OpKind::softmax)) return reader != nullptr;
    if (!reader->has_trait(kView) && !reader->is(OpKind::cast)) return false;
    value = reader->output();
  }
  return false;
}

// What is low hides a key whatever its score, so that the sum is never lower than the mask alone. A bound keeps the
// softmax of a query without keys a number.
Result<bool> bounded_mask(Rewrite& r) {
  const auto& attrs = r.node->attrs<ActivationAttrs>();
  const Node* sum = made_by(r.input(0), Op::add);
  if (attrs.op != ActivationOp::clip || attrs.alpha > kLow || !std::isfinite(attrs.alpha) || attrs.beta != HUGE_VAL ||
      !sum || !r.input(0)->has_single_use() || !leads_to_softmax(r.output()))
    return false;
  for (const size_t side : {0, 1}) {
    Value *scores = sum->input(side), *mask = sum->input(1 - side);
    if (!same_shape(scores, r.output()) || !are_scores(scores)) continue;
    if (largest_magnitude(mask) <= -attrs.alpha) return r.finish(r.input(0));
    r.absorb(sum);
    return r.finish(r.plus(scores, r.add(attrs, {mask})));
  }
  return false;
}

// probabilities * values, perhaps transposed.
struct Weighted {
  const Node* product;
  const Node* transpose;  // null = it is not
};
std::optional<Weighted> weighted_of(const Value* value) {
  const Node* transpose = made_by(value, OpKind::transpose);
  const Value* y = transpose ? transpose->input(0) : value;
  const Node* product = y->producer();
  if (!multiplies_computed(product) || !value->has_single_use() || !y->has_single_use()) return std::nullopt;
  return Weighted{product, transpose};
}

// Whether it is a softmax, or one whose rows without keys are zeros.
bool are_probabilities(const Value* value) {
  const Node* select = made_by(value, OpKind::select);
  return made_by(select ? select->input(2) : value, OpKind::softmax);
}

// Products of the same probabilities, side by side, are one by values side by side.
Result<bool> values_side_by_side(Rewrite& r) {
  const std::optional<Weighted> first = weighted_of(r.input(0));
  if (!first || !are_probabilities(first->product->input(0))) return false;
  const auto& attrs = first->product->attrs<MatmulAttrs>();
  const auto rank = static_cast<size_t>(r.output()->rank());
  const Ints perm = first->transpose ? permutation_of(first->transpose->attrs<TransposeAttrs>(), rank) : Ints{};
  LATHE_ASSIGN(int64_t axis, normalize_axis(r.node->attrs<ConcatAttrs>().axis, r.output()->rank()));
  if (first->transpose) axis = perm[static_cast<size_t>(axis)];
  if (axis != r.output()->rank() - 1) return false;
  std::vector<const Node*> products;
  std::vector<Value*> values;
  for (size_t i = 0; i < r.node->num_inputs(); ++i) {
    const std::optional<Weighted> each = weighted_of(r.input(i));
    if (!each || each->product->input(0) != first->product->input(0) ||
        !equal(each->product->attributes(), first->product->attributes()) || !each->transpose != !first->transpose ||
        (each->transpose && permutation_of(each->transpose->attrs<TransposeAttrs>(), rank) != perm))
      return false;
    products.push_back(each->product);
    values.push_back(each->product->input(1));
    if (values.back()->rank() != r.output()->rank()) return false;
    Shape others = values.back()->shape();  // which the product may broadcast, and the concatenation does not
    const size_t joined = rank - (attrs.transpose_b ? 2 : 1);
    others[joined] = values[0]->shape()[joined];
    if (others != values[0]->shape()) return false;
  }
  for (const Node* product : products) r.absorb(product);
  Value* side_by_side = r.concat(std::move(values), attrs.transpose_b ? -2 : -1);
  Value* y = r.add(first->product->attributes(), {first->product->input(0), side_by_side});
  return r.finish(first->transpose ? r.transpose(y, perm) : y);
}

// Channels before pixels: probabilities are the right operand.
Result<bool> probabilities_first(Rewrite& r) {
  const auto& attrs = r.node->attrs<MatmulAttrs>();
  if (!attrs.transpose_b || !multiplies_computed(r.node) || !are_probabilities(r.input(1)) ||
      are_probabilities(r.input(0)))
    return false;
  MatmulAttrs swapped = attrs;
  swapped.transpose_a = false, swapped.transpose_b = !attrs.transpose_a;
  Value* y = r.add(swapped, {r.input(1), r.input(0)});
  return r.finish(r.transpose(y, swap_of_last_two(y->rank())));
}

}  // namespace

Result<bool> canonicalize_attention(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"view(view(q k^T) + bias) = q k^T + view(bias)", OpKind::reshape, bias_of_places},
      {"max(scores + mask, lowest) = scores + max(mask, lowest)", OpKind::activation, bounded_mask},
      {"v p^T = (p v^T)^T", OpKind::matmul, probabilities_first},
      {"concat(p v, p w) = p concat(v, w)", OpKind::concat, values_side_by_side},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
