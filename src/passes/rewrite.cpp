// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite.h"

#include <algorithm>

#include "ops/rules.h"

namespace lathe {

void Rewrite::absorb(const ir::Node* other) {
  for (const std::string& name : other->origin())
    if (std::find(origin_.begin(), origin_.end(), name) == origin_.end()) origin_.push_back(name);
}

Result<ir::Value*> Rewrite::add(const Attributes& attributes, std::vector<ir::Value*> inputs) {
  LATHE_ASSIGN(ir::Node * added, graph.add(attributes, std::move(inputs), {{}, origin_, {}}, 1, node));
  added_.push_back(added);
  return added->output();
}

Result<ir::Value*> Rewrite::unary(UnaryOp op, ir::Value* x) {
  UnaryAttrs attrs;
  attrs.op = op;
  return add(attrs, {x});
}

Result<ir::Value*> Rewrite::activation(ActivationOp op, ir::Value* x, double alpha, double beta) {
  ActivationAttrs attrs;
  attrs.op = op;
  attrs.alpha = alpha;
  attrs.beta = beta;
  return add(attrs, {x});
}

Result<ir::Value*> Rewrite::elementwise(ElementwiseOp op, ir::Value* a, ir::Value* b) {
  ElementwiseAttrs attrs;
  attrs.op = op;
  return add(attrs, {a, b});
}

Result<ir::Value*> Rewrite::constant(Tensor value) {
  ConstantAttrs attrs;
  attrs.value = std::move(value);
  return add(attrs, {});
}

Result<ir::Value*> Rewrite::scalar(DType dtype, double value) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(dtype, {}));
  write_doubles({&value, 1}, 0, tensor);
  return constant(std::move(tensor));
}

Result<ir::Value*> Rewrite::ints(const Ints& values) {
  return constant(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values));
}

Result<ir::Value*> Rewrite::reshape(ir::Value* x, const Ints& dims) {
  LATHE_ASSIGN(ir::Value * shape, ints(dims));
  return add(ReshapeAttrs(), {x, shape});
}

Result<ir::Value*> Rewrite::dims_of(ir::Value* x, int64_t first, int64_t last) {
  ShapeAttrs attrs;
  attrs.start = first;
  attrs.end = last;
  return add(attrs, {x});
}

bool may_stand_for(const ir::Value* value, const ir::Value* replaced) {
  return !replaced->is_graph_output() || (value->producer() && !value->constant() && !value->is_graph_output());
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
  ir::Value* old = node->output();
  const bool fits = result->dtype() == old->dtype() && result->shape() == old->shape() && may_stand_for(result, old);
  if (!fits || result == old) {
    for (; !added_.empty(); added_.pop_back())
      if (added_.back()->output()->uses().empty()) graph.erase(added_.back());
    return false;
  }
  LATHE_TRY(graph.replace_uses(old, result));
  const std::string value_name = old->name(), node_name = node->name();
  erase_unused(graph, node);
  if (!added_.empty() && result->producer() == added_.back()) {
    graph.rename(result, value_name);
    graph.rename(added_.back(), node_name);
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
      LATHE_ASSIGN(const bool applied, rule.apply(rewrite));
      changed |= applied;
      if (applied) break;
    }
  }
  return changed;
}

}  // namespace lathe
