// SPDX-License-Identifier: Apache-2.0
// Bodies of control flow have constants of their own, where passes see what they are, and take nothing that they do not
// read. The content is shared, in memory and in the plan.
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr size_t kControls = 2;  // trip count and condition, before a loop's carried values

// The first operand that comes into the bodies as it is.
size_t first_shared(const ir::Node& node) {
  if (node.is(OpKind::branch)) return 1;
  const auto& attrs = node.attrs<LoopAttrs>();
  return kControls + static_cast<size_t>(attrs.carried) + attrs.scan_axes.size();
}

ir::Value* body_input(const ir::Graph& body, const ir::Node& node, size_t operand) {
  return body.inputs()[node.is(OpKind::branch) ? operand - 1 : operand];
}

Result<> sink(ir::Graph& body, ir::Value* input, const Tensor& content, const std::string& name) {
  if (input->uses().empty() && !input->is_graph_output()) return {};
  ir::Node* first = body.nodes().empty() ? nullptr : body.nodes().front().get();
  LATHE_ASSIGN(ir::Value * constant, body.add_constant(content, name, first));
  return body.replace_uses(input, constant);
}

Result<bool> sink_into(ir::Graph& graph, ir::Node& node) {
  bool changed = false;
  for (size_t i = node.num_inputs(); i-- > first_shared(node);) {
    const ir::Value* operand = node.input(i);
    bool is_read = false;
    for (const auto& body : node.bodies()) {
      ir::Value* input = body_input(*body, node, i);
      if (const Tensor* content = operand->constant()) LATHE_TRY(sink(*body, input, *content, operand->name()));
      is_read |= !input->uses().empty() || input->is_graph_output();
    }
    if (is_read) continue;
    LATHE_TRY(graph.remove_shared_operand(&node, i));
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> sink_constants(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (node->bodies().empty()) continue;
    LATHE_ASSIGN(const bool sunk, sink_into(graph, *node));
    changed |= sunk;
  }
  return changed;
}

}  // namespace lathe
