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

class Closure {
 public:
  Closure(const std::vector<Node*>& nodes, bool permutations, const std::function<bool(const Node&)>& may_join)
      : given_(nodes.begin(), nodes.end()), nodes_(given_), permutations_(permutations), may_join_(may_join) {}

  // All concatenations and slices before the nodes that only these read, and permutations if wanted.
  void grow() {
    std::vector<Node*> open(nodes_.begin(), nodes_.end());
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      for (const Value* input : node->inputs()) {
        Node* producer = input ? input->producer() : nullptr;
        if (!producer || nodes_.contains(producer) || !joins(*producer)) continue;
        nodes_.insert(producer);
        open.push_back(producer);
      }
    }
    drop_edges();
  }

  const std::set<Node*>& nodes() const { return nodes_; }
  size_t concatenations() const {
    return static_cast<size_t>(
        std::count_if(nodes_.begin(), nodes_.end(), [](const Node* node) { return node->is(OpKind::concat); }));
  }

 private:
  bool joins(const Node& node) const {
    if (node.num_outputs() != 1 || node.output()->is_graph_output()) return false;
    if (!is_piecewise(node) && !(permutations_ && permutes_elements(node))) return false;
    if (!may_join_(node)) return false;
    const std::vector<Value*>& inputs = node.inputs();
    if (node.is(OpKind::concat) && !std::all_of(inputs.begin(), inputs.end(), is_cut)) return false;
    const std::vector<ir::Use>& uses = node.output()->uses();
    return std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) { return nodes_.contains(use.node); });
  }

  // What is behind no concatenation but only moves memory is a view, or is read so, without being taken in.
  void drop_edges() {
    for (bool drops = true; drops;) {
      drops = false;
      for (auto it = nodes_.begin(); it != nodes_.end();) {
        const Node& node = **it;
        const bool is_edge =
            node.is(OpKind::slice) && !given_.contains(*it) &&
            std::none_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) { return holds(input); });
        drops |= is_edge;
        it = is_edge ? nodes_.erase(it) : std::next(it);
      }
    }
  }
  bool holds(const Value* value) const { return value && nodes_.contains(value->producer()); }

  const std::set<Node*> given_;
  std::set<Node*> nodes_;
  const bool permutations_;
  const std::function<bool(const Node&)>& may_join_;
};

// The boxes of the last node's result in each of which every concatenation among the nodes, which are in graph order,
// gives one part; empty where there are no such, or too many.
std::vector<Region> boxes_of(Node* last, const std::vector<Node*>& nodes, const std::vector<Range>& symbols,
                             const std::function<size_t(const Node*)>& position) {
  struct Box {
    Space space;
    IndexMap result;
  };
  Space whole(symbols);
  const Shape index = whole.add(last->output()->shape());
  std::vector<Box> open{{whole, {index, {}}}};
  std::vector<Region> boxes;
  while (!open.empty()) {
    ExpressionBuilder expression(last, open.back().space, open.back().result);
    open.pop_back();
    if (expression.take(nodes)) {
      std::optional<Region> box = expression.region(position);
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

std::optional<Region> region_with(const Closure& closure, Node* last, const std::vector<Range>& symbols,
                                  CostModel& costs, const std::function<size_t(const Node*)>& position) {
  // A concatenation alone is copies of its parts as it is.
  if (closure.concatenations() < (last->is(OpKind::concat) ? 2u : 1u)) return std::nullopt;
  std::vector<Node*> nodes(closure.nodes().begin(), closure.nodes().end());
  std::sort(nodes.begin(), nodes.end(), [&](Node* a, Node* b) { return position(a) < position(b); });
  std::vector<Region> boxes = boxes_of(last, nodes, symbols, position);
  if (boxes.empty() || copies_pay(closure.nodes(), last, boxes.size(), costs)) return std::nullopt;
  Region region = boxes.front();
  region.nodes = std::move(nodes);
  region.boxes = std::move(boxes);
  return region;
}

}  // namespace

std::optional<Region> region_in_boxes(Node* last, const std::vector<Node*>& nodes, const std::vector<Range>& symbols,
                                      CostModel& costs, const std::function<bool(const Node&)>& may_join,
                                      const std::function<size_t(const Node*)>& position) {
  // What is permuted before it is joined may be read by no map: an index with an offset has no quotients.
  for (const bool permutations : {true, false}) {
    Closure closure(nodes, permutations, may_join);
    closure.grow();
    if (std::optional<Region> region = region_with(closure, last, symbols, costs, position)) return region;
  }
  return std::nullopt;
}

}  // namespace lathe
