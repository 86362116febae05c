// SPDX-License-Identifier: Apache-2.0
// Which nodes run together. A heavy op takes the pointwise nodes that follow it; what is left of the pointwise nodes is
// grouped into expressions; everything else stands alone.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "build/program_builder.h"
#include "build/region.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// A program operand is read once per output element: its shape must provably broadcast to the result's.
bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != Expr(1) && from[i] != to[lead + i]) return false;
  return true;
}

bool all_broadcast(const Node& node) {
  return std::all_of(node.inputs().begin(), node.inputs().end(),
                     [&](const Value* input) { return broadcasts_to(input->shape(), node.output()->shape()); });
}

bool is_heavy(const Node& node) { return node.has_trait(kHeavy | kReduction) || node.is(OpKind::resize); }

Value* bias_of(const Node& node) {
  return node.is(OpKind::convolution) || node.is(OpKind::deconvolution) ? node.input(2) : nullptr;
}

RegionKind kind_alone(const Node& node) {
  if (node.has_trait(kView) || node.is(OpKind::identity)) return RegionKind::view;
  switch (node.kind()) {
    case OpKind::transpose:
    case OpKind::slice:
    case OpKind::split:
    case OpKind::concat:
    case OpKind::expand:
      return RegionKind::movement;
    default:
      return RegionKind::eval;
  }
}

class Grouper {
 public:
  Grouper(const ir::Graph& graph, const GroupingOptions& options)
      : graph_(graph), fuse_(options.fuse), narrow_floats_(options.narrow_floats) {}

  std::vector<Region> run() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it)
      if (takes_epilogue(**it) && !owner_.contains(it->get())) take_epilogue(it->get());
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it)
      if (is_programmable(**it, narrow_floats_) && all_broadcast(**it) && !owner_.contains(it->get()))
        take_expression(it->get());
    return in_order();
  }

 private:
  bool takes_epilogue(const Node& node) const {
    const DType dtype = node.output()->dtype();
    return is_heavy(node) && node.num_outputs() == 1 && node.input(0)->dtype() == dtype &&
           (dtype == DType::f32 || (narrow_floats_ && (dtype == DType::f16 || dtype == DType::bf16)));
  }

  // The chain of pointwise nodes after a heavy op, as far as each result has one reader of the same shape.
  void take_epilogue(Node* root) {
    Region region{RegionKind::kernel, root, {root}, {}, {}, {}};
    ProgramBuilder program(root->output());
    if (Value* bias = bias_of(*root)) program.add_bias(bias);
    Value* result = root->output();
    while (fuse_ && result->has_single_use()) {
      Node* next = result->uses()[0].node;
      if (!is_programmable(*next, narrow_floats_) || owner_.contains(next) ||
          next->output()->shape() != result->shape() || !all_broadcast(*next) || !program.add(*next))
        break;
      region.nodes.push_back(next);
      result = next->output();
    }
    program.finish(result, region);
    add(std::move(region), result);
  }

  // The expression that ends at `last`: producers join while all their readers are inside and shapes agree.
  void take_expression(Node* last) {
    std::vector<Node*> nodes = {last};
    std::unordered_set<const Node*> inside = {last};
    const auto joins = [&](const Node* node) {
      if (!node || owner_.contains(node) || inside.contains(node) || !is_programmable(*node, narrow_floats_) ||
          !all_broadcast(*node) || node->output()->is_graph_output() ||
          node->output()->shape() != last->output()->shape())
        return false;
      return std::all_of(node->output()->uses().begin(), node->output()->uses().end(),
                         [&](const ir::Use& use) { return inside.contains(use.node); });
    };
    for (bool grown = fuse_; grown && nodes.size() < kMaxProgramCode / 4;) {
      grown = false;
      for (size_t i = 0; i < nodes.size() && !grown; ++i)
        for (Value* input : nodes[i]->inputs())
          if (joins(input->producer())) {
            nodes.push_back(input->producer());
            inside.insert(input->producer());
            grown = true;
            break;
          }
    }
    while (!build_expression(nodes, last)) nodes.pop_back();  // too many operands: the last to join leaves
  }

  bool build_expression(std::vector<Node*> nodes, Node* last) {
    std::sort(nodes.begin(), nodes.end(), [&](Node* a, Node* b) { return position(a) < position(b); });
    ProgramBuilder program;
    for (Node* node : nodes)
      if (!program.add(*node)) return false;
    Region region{RegionKind::pointwise, last, nodes, {}, {}, {}};
    program.finish(last->output(), region);
    add(std::move(region), last->output());
    return true;
  }

  void add(Region region, Value* result) {
    region.outputs = {result};
    for (const Node* node : region.nodes) owner_[node] = regions_.size();
    regions_.push_back(std::move(region));
  }

  size_t position(const Node* node) {
    if (positions_.empty())
      for (const auto& each : graph_.nodes()) positions_.emplace(each.get(), positions_.size());
    return positions_.at(node);
  }

  // A region runs where its last node stood: all that its nodes read is ready there, and nothing reads its inner
  // values.
  std::vector<Region> in_order() {
    std::vector<Region> ordered;
    for (const auto& node : graph_.nodes()) {
      const auto it = owner_.find(node.get());
      if (it != owner_.end()) {
        Region& region = regions_[it->second];
        if (region.nodes.back() == node.get()) ordered.push_back(std::move(region));
      } else if (!node->is(OpKind::constant)) {
        Region region{kind_alone(*node), node.get(), {node.get()}, {}, {}, {}};
        for (size_t i = 0; i < node->num_outputs(); ++i) region.outputs.push_back(node->output(i));
        ordered.push_back(std::move(region));
      }
    }
    return ordered;
  }

  const ir::Graph& graph_;
  bool fuse_;
  bool narrow_floats_;
  std::vector<Region> regions_;
  std::unordered_map<const Node*, size_t> owner_;
  std::unordered_map<const Node*, size_t> positions_;
};

}  // namespace

std::vector<Region> group_regions(const ir::Graph& graph, const GroupingOptions& options) {
  return Grouper(graph, options).run();
}

Region region_alone(Node& node) {
  Region region{is_heavy(node) ? RegionKind::kernel : RegionKind::eval, &node, {&node}, {}, {}, {}};
  if (region.kind == RegionKind::kernel) {
    ProgramBuilder program(node.output());
    if (Value* bias = bias_of(node)) program.add_bias(bias);
    program.finish(node.output(), region);
  } else {
    region.program = {1, {}, {0}};
  }
  for (size_t i = 0; i < node.num_outputs(); ++i) region.outputs.push_back(node.output(i));
  return region;
}

}  // namespace lathe
