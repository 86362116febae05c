// SPDX-License-Identifier: Apache-2.0
#include "build/readings.h"

#include <algorithm>

#include "build/expression.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// Factors of products, queries, keys and values may lie in any order.
bool takes_movement_before(const Node& root, size_t input) {
  return (root.is(OpKind::matmul) && input < 2) || (root.is(OpKind::attention) && input < 3);
}

}  // namespace

std::optional<Region> movement_before(const Node& root, size_t input, const std::vector<Range>& symbols,
                                      const std::function<bool(const Node&)>& may_join,
                                      const std::function<size_t(const Node*)>& position) {
  if (!takes_movement_before(root, input) || !root.input(input)->has_single_use()) return std::nullopt;
  Node* last = root.input(input)->producer();
  const auto joins = [&](const Node& node) { return permutes_elements(node) && may_join(node); };
  if (!last || !joins(*last)) return std::nullopt;
  Expression expression(last, symbols);
  while (expression.grow(joins)) {
  }
  const std::vector<Node*>& nodes = expression.nodes();
  const bool reorders = std::any_of(nodes.begin(), nodes.end(), [](Node* node) { return reorders_elements(*node); });
  if (!reorders || !expression.is_known()) return std::nullopt;
  std::optional<Region> region = expression.region(position);
  if (!region) return std::nullopt;
  const Value* source = region->operands[0];
  const Node* producer = source->producer();
  const bool is_written_so =
      producer && source->has_single_use() && !permutes_elements(*producer) && may_join(*producer);
  if (source->constant() || is_written_so) return std::nullopt;
  return region;
}

Region::Reading reading_of(const Region& movement, size_t input) {
  const Region::Arrangement& arrangement = *movement.arrangement;
  return {input, movement.operands[0], arrangement.space, arrangement.operands[0].map};
}

}  // namespace lathe
