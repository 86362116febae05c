// SPDX-License-Identifier: Apache-2.0
#include "lowering/moved_inputs.h"

#include <algorithm>

#include "indexing/access.h"
#include "lowering/expression_builder.h"
#include "tuning/problem.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// What may lie in any order: factors of products, and what is reduced, but see keeps_runs(). Of images, layouts are
// chosen (lowering/layouts.cpp).
bool reads_in_any_order(const Node& root, size_t input) {
  if (root.has_trait(kPixels)) return false;
  return is_factor(root.info(), input) || (root.has_trait(kReduction) && input == 0);
}

// Whether neighbours along the last axis are neighbours in memory: kernels that read rows or columns of it read runs. A
// copy moves what lies otherwise by tiles, which is quicker than reading it with strides.
bool keeps_runs(const Region& movement) {
  const Expression& expression = movement.expression;
  const Shape strides = dense_strides(expression.operands[0]->shape(), Layout::linear);
  const std::optional<Access> access = access_of(expression.reads[0].map, strides, expression.space);
  return access && access->strides.back() == Expr(1);
}

}  // namespace

std::optional<Region> movement_before(const Node& root, size_t input, const NodeOrder& order,
                                      const MayJoin& may_join) {
  if (!reads_in_any_order(root, input) || !root.input(input)->has_single_use()) return std::nullopt;
  Node* last = root.input(input)->producer();
  const auto joins = [&](const Node& node) { return permutes_elements(node) && may_join(node); };
  if (!last || !joins(*last)) return std::nullopt;
  ExpressionBuilder expression(last, order);
  expression.grow(joins);
  const std::vector<Node*>& nodes = expression.nodes();
  const bool reorders = std::any_of(nodes.begin(), nodes.end(), [](Node* node) { return reorders_elements(*node); });
  if (!reorders || !expression.is_known()) return std::nullopt;
  std::optional<Region> region = expression.region();
  if (!region) return std::nullopt;
  const Value* source = region->expression.operands[0];
  const Node* producer = source->producer();
  const bool is_written_so =
      producer && source->has_single_use() && !permutes_elements(*producer) && may_join(*producer);
  if (source->constant() || is_written_so || (root.has_trait(kReduction) && !keeps_runs(*region))) return std::nullopt;
  return region;
}

}  // namespace lathe
