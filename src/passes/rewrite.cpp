// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite.h"

#include <algorithm>

namespace lathe {

void Rewrite::absorb(const ir::Node* other) {
  for (const std::string& name : other->origin())
    if (std::find(name_.origin.begin(), name_.origin.end(), name) == name_.origin.end()) name_.origin.push_back(name);
}

bool may_stand_for(const ir::Value* value, const ir::Value* replaced) {
  return !replaced->is_graph_output() || (value->producer() && !value->content() && !value->is_graph_output());
}

void erase_unused(ir::Graph& graph, ir::Node* node) {
  // A producer enters the list once for each reader that goes, and goes itself with the last of them.
  std::vector<ir::Node*> list = {node};
  while (!list.empty()) {
    ir::Node* next = list.back();
    list.pop_back();
    bool needed = false;
    for (size_t i = 0; i < next->num_outputs(); ++i)
      needed |= !next->output(i)->uses().empty() || next->output(i)->is_graph_output();
    if (needed) continue;
    for (ir::Value* input : next->inputs())
      if (input && input->producer() && std::find(list.begin(), list.end(), input->producer()) == list.end())
        list.push_back(input->producer());
    graph.erase(next);
  }
}

Result<bool> Rewrite::finish(ir::Value* result) {
  if (failed()) return false;
  ir::Value* old = node->output();
  const bool fits = result->dtype() == old->dtype() && result->shape() == old->shape() && may_stand_for(result, old);
  if (!fits || result == old) {
    for (; !added_.empty(); added_.pop_back())
      if (added_.back()->output()->uses().empty()) graph_.erase(added_.back());
    return false;
  }
  LATHE_TRY(graph_.replace_uses(old, result));
  const std::string value_name = old->name(), node_name = node->name();
  erase_unused(graph_, node);
  if (!added_.empty() && result->producer() == added_.back()) {
    graph_.rename(result, value_name);
    graph_.rename(added_.back(), node_name);
  }
  return true;
}

Result<bool> apply_rules(ir::Graph& graph, PassContext& context, std::span<const Rule> rules) {
  bool changed = false;
  // Rules erase the node at hand and earlier ones only, so the next position stays valid.
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    ir::Node* node = it->get();
    ++it;
    if (node->output()->uses().empty() && !node->output()->is_graph_output()) continue;
    for (const Rule& rule : rules) {
      if (!node->is(rule.root)) continue;
      Rewrite rewrite(graph, context, node);
      const Result<bool> applied = rule.apply(rewrite);
      if (rewrite.failed()) return fail(*rewrite.error());
      if (!applied) return fail(applied.error());
      changed |= *applied;
      if (*applied) break;
    }
  }
  return changed;
}

}  // namespace lathe
