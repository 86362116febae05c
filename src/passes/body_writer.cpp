// SPDX-License-Identifier: Apache-2.0
#include "passes/body_writer.h"

namespace lathe {

Result<ir::Value*> BodyWriter::inside(ir::Value* outside) {
  if (const auto bound = inside_.find(outside); bound != inside_.end()) return bound->second;
  if (!captured_) return outside;
  if (const Tensor* content = outside->constant()) {
    LATHE_ASSIGN(inside_[outside], body_.add_constant(*content, outside->name()));
    return inside_[outside];
  }
  return captured_->inside(outside, body_);
}

Result<> BodyWriter::copy(const NodeSet& nodes) {
  for (const auto& node : graph_.nodes()) {
    if (!nodes.contains(node.get())) continue;
    std::vector<ir::Value*> inputs;
    for (ir::Value* input : node->inputs()) {
      inputs.push_back(nullptr);
      if (!input) continue;
      LATHE_ASSIGN(inputs.back(), inside(input));
    }
    ir::NodeName name{node->name(), node->origin(), {}};
    for (size_t i = 0; i < node->num_outputs(); ++i) name.outputs.push_back(node->output(i)->name());
    LATHE_ASSIGN(ir::Node * made, body_.add(node->attributes(), graph_.clone_bodies(*node), std::move(inputs),
                                            std::move(name), node->num_outputs()));
    made->metadata = node->metadata;
    for (size_t i = 0; i < node->num_outputs(); ++i) bind(node->output(i), made->output(i));
  }
  return {};
}

NodeSet producers_of(std::vector<const ir::Value*> values, const NodeSet& among) {
  NodeSet found;
  while (!values.empty()) {
    const ir::Value* value = values.back();
    values.pop_back();
    const ir::Node* node = value ? value->producer() : nullptr;
    if (!node || !among.contains(node) || !found.insert(node).second) continue;
    values.insert(values.end(), node->inputs().begin(), node->inputs().end());
  }
  return found;
}

void erase_all(ir::Graph& graph, const NodeSet& nodes) {
  std::vector<ir::Node*> order;
  for (const auto& node : graph.nodes())
    if (nodes.contains(node.get())) order.push_back(node.get());
  for (auto node = order.rbegin(); node != order.rend(); ++node) graph.erase(*node);
}

}  // namespace lathe
