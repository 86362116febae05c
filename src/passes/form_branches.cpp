// SPDX-License-Identifier: Apache-2.0
// Lazy choices become branches: what only one of the two values needs is computed where that one is chosen.
#include <algorithm>

#include "passes/body_writer.h"

namespace lathe {
namespace {

// A branch is decided between launches. Where little is to be saved, computing both values takes less time.
constexpr size_t kFewNodes = 8;

bool is_lazy(const ir::Node& node) { return node.is(OpKind::choose) && node.attrs<ChooseAttrs>().lazy; }

// Choices by one condition, the last first, on which no other choice depends: those may become a part of its branch.
std::vector<ir::Node*> last_choices(const ir::Graph& graph) {
  std::vector<ir::Node*> choices;
  NodeSet all, needed;
  for (const auto& node : graph.nodes()) all.insert(node.get());
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    ir::Node& choice = **node;
    if (!is_lazy(choice) || needed.contains(&choice)) continue;
    if (choices.empty() || choice.input(0) == choices[0]->input(0)) choices.push_back(&choice);
    needed.merge(producers_of({choice.input(1), choice.input(2)}, all));
  }
  return choices;
}

// The nodes whose results lead nowhere but to operand `side` of these choices.
NodeSet nodes_only_for(const ir::Graph& graph, const std::vector<ir::Node*>& choices, size_t side) {
  NodeSet found;
  const auto leads_there = [&](const ir::Use& use) {
    return found.contains(use.node) || (use.index == side && std::ranges::count(choices, use.node) > 0);
  };
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    bool is_read = false, leads_elsewhere = false;
    for (size_t i = 0; i < (*node)->num_outputs(); ++i) {
      const ir::Value& value = *(*node)->output(i);
      is_read |= !value.uses().empty();
      leads_elsewhere |= value.is_graph_output() || !std::ranges::all_of(value.uses(), leads_there);
    }
    if (is_read && !leads_elsewhere) found.insert(node->get());
  }
  return found;
}

bool is_worth_a_branch(const NodeSet& nodes) {
  const auto computes = [](const ir::Node* node) { return !node->is(OpKind::constant); };
  return static_cast<size_t>(std::ranges::count_if(nodes, computes)) > kFewNodes ||
         std::ranges::any_of(nodes, [](const ir::Node* node) { return node->has_trait(kHeavy | kControlFlow); });
}

Result<> form_branch(ir::Graph& graph, const std::vector<ir::Node*>& choices, const NodeSet (&sides)[2]) {
  ir::Value* condition = choices[0]->input(0);
  ir::Captured captured;
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  ir::NodeName name{choices[0]->name(), {}, {}};
  for (size_t side : {1, 2}) {
    LATHE_ASSIGN(std::unique_ptr<ir::Graph> body, graph.make_body(choices[0]->name(), BranchAttrs(), {condition}));
    BodyWriter writer(graph, *body, &captured);
    LATHE_TRY(writer.copy(sides[side - 1]));
    for (const ir::Node* choice : choices) {
      LATHE_ASSIGN(ir::Value * result, writer.inside(choice->input(side)));
      body->add_output(result, choice->output()->name());
    }
    bodies.push_back(std::move(body));
  }
  for (const auto& body : bodies) captured.complete(*body);
  std::vector<ir::Value*> operands = {condition};
  operands.insert(operands.end(), captured.values().begin(), captured.values().end());
  for (const ir::Node* choice : choices) {
    name.origin.insert(name.origin.end(), choice->origin().begin(), choice->origin().end());
    name.outputs.push_back(choice->output()->name());
  }
  LATHE_ASSIGN(ir::Node * branch,
               graph.add(BranchAttrs(), std::move(bodies), std::move(operands), std::move(name), choices.size()));
  for (size_t i = 0; i < choices.size(); ++i) {
    graph.redirect_uses(choices[i]->output(), branch->output(i));
    graph.erase(choices[i]);
  }
  for (const NodeSet& side : sides) erase_all(graph, side);
  LATHE_TRY(graph.sort());
  return graph.infer_all();
}

}  // namespace

Result<bool> form_branches(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (;;) {
    const std::vector<ir::Node*> choices = last_choices(graph);
    if (choices.empty()) return changed;
    changed = true;
    const NodeSet sides[] = {nodes_only_for(graph, choices, 1), nodes_only_for(graph, choices, 2)};
    if (is_worth_a_branch(sides[0]) || is_worth_a_branch(sides[1])) {
      LATHE_TRY(form_branch(graph, choices, sides));
      continue;
    }
    for (ir::Node* choice : choices) LATHE_TRY(graph.set_attributes(choice, ChooseAttrs()));
  }
}

}  // namespace lathe
