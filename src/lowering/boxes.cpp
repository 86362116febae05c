// SPDX-License-Identifier: Apache-2.0
#include "lowering/boxes.h"

#include <algorithm>
#include <set>

#include "lowering/expression_builder.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr size_t kMostBoxes = 16;

bool is_piecewise(const Node& node) { return node.is(OpKind::concat) || node.is(OpKind::slice); }

// Whether the value is a part of something in memory: then no kernel can write it into its place in a concatenation.
bool is_cut(const Value* value) {
  const Node* producer = value->producer();
  return producer && (producer->has_trait(kCuts) || producer->is(OpKind::concat));
}

// The nodes with all concatenations and slices before them that only these read, and permutations if wanted.
std::set<Node*> closure_of(const std::vector<Node*>& given, bool permutations, const MayJoin& may_join) {
  std::set<Node*> nodes(given.begin(), given.end());
  const auto holds = [&](const Value* value) { return value && nodes.contains(value->producer()); };
  const auto joins = [&](const Node& node) {
    if (node.num_outputs() != 1 || node.output()->is_graph_output() || !may_join(node)) return false;
    if (!is_piecewise(node) && !(permutations && permutes_elements(node))) return false;
    if (node.is(OpKind::concat) && !std::ranges::all_of(node.inputs(), is_cut)) return false;
    return std::ranges::all_of(node.output()->uses(), [&](const ir::Use& use) { return nodes.contains(use.node); });
  };
  std::vector<Node*> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Value* input : node->inputs()) {
      Node* producer = input ? input->producer() : nullptr;
      if (producer && !nodes.contains(producer) && joins(*producer)) {
        nodes.insert(producer);
        open.push_back(producer);
      }
    }
  }
  // What is behind no concatenation but only moves memory is a view, or is read so, without being taken in.
  const auto is_edge = [&](Node* node) {
    return node->is(OpKind::slice) && std::ranges::count(given, node) == 0 &&
           std::ranges::none_of(node->inputs(), holds);
  };
  while (std::erase_if(nodes, is_edge) > 0) {
  }
  return nodes;
}

size_t concatenations_in(const std::set<Node*>& nodes) {
  return static_cast<size_t>(std::ranges::count_if(nodes, [](const Node* node) { return node->is(OpKind::concat); }));
}

// The boxes of the last node's result in each of which every concatenation among the nodes, which are in graph order,
// gives one part; empty where there are no such, or too many.
std::vector<Region> boxes_of(Node* last, const std::vector<Node*>& nodes, const NodeOrder& order) {
  struct Box {
    Space space;
    IndexMap result;
  };
  Space whole(order.symbols);
  const Shape index = whole.add(last->output()->shape());
  std::vector<Box> open{{whole, {index, {}}}};
  std::vector<Region> boxes;
  while (!open.empty()) {
    ExpressionBuilder expression(last, order, open.back().space, open.back().result);
    open.pop_back();
    if (expression.take(nodes)) {
      std::optional<Region> box = expression.region();
      if (!box) return {};
      boxes.push_back(*std::move(box));
      continue;
    }
    if (!expression.cut() || open.size() + boxes.size() + 2 > kMostBoxes) return {};
    const SplitPoint& cut = *expression.cut();
    Box first{expression.space(), expression.result()};
    Box second = first;
    const Expr extent = first.space.extents()[cut.axis];
    first.space.narrow(cut.axis, 0, cut.at);
    second.space.narrow(cut.axis, cut.at, extent);
    open.push_back(std::move(second));
    open.push_back(std::move(first));
  }
  return boxes;
}

// Copies of parts are a step each, and move what they read and write; what both ways move is left out.
bool copies_pay(const std::set<Node*>& nodes, const Node* last, size_t boxes, CostModel& costs) {
  Work copies{0, 0, last->is(OpKind::concat) ? 0.0 : 1.0};  // the expression itself
  for (const Node* node : nodes) {
    if (!node->is(OpKind::concat)) continue;
    copies.steps += static_cast<double>(node->num_inputs());
    if (node != last) copies.bytes += 2 * costs.bytes_of(node->output());
  }
  const Work read{0, 0, static_cast<double>(boxes)};
  return costs.pays(last->output(), {"parts are copied", copies}, {"parts are read in place, in boxes", read});
}

}  // namespace

std::optional<Region> region_in_boxes(Node* last, const std::vector<Node*>& nodes, const NodeOrder& order,
                                      CostModel& costs, const MayJoin& may_join) {
  // What is permuted before it is joined may be read by no map: an index with an offset has no quotients.
  for (const bool permutations : {true, false}) {
    const std::set<Node*> closure = closure_of(nodes, permutations, may_join);
    // A concatenation alone is copies of its parts as it is.
    if (concatenations_in(closure) < (last->is(OpKind::concat) ? 2u : 1u)) continue;
    std::vector<Node*> in_order(closure.begin(), closure.end());
    order.sort(in_order);
    std::vector<Region> boxes = boxes_of(last, in_order, order);
    if (boxes.empty() || copies_pay(closure, last, boxes.size(), costs)) continue;
    Region region = boxes.front();
    region.nodes = std::move(in_order);
    region.boxes = std::move(boxes);
    return region;
  }
  return std::nullopt;
}

}  // namespace lathe
