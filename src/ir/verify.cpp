// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "ir/graph.h"

namespace lathe::ir {
namespace {

Result<> verify_node(const Node& node, const std::unordered_set<const Value*>& produced) {
  const auto inputs = static_cast<int>(node.num_inputs());
  if (inputs < node.info().min_inputs || inputs > node.info().max_inputs)
    return fail(ErrorCode::graph_invalid, "node '{}' ({}) has {} inputs", node.name(), node.info().name, inputs);
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const Value* input = node.input(i);
    if (!input) {
      if (static_cast<int>(i) < node.info().min_inputs)
        return fail(ErrorCode::graph_invalid, "node '{}' lacks its required input {}", node.name(), i);
      continue;
    }
    if (!produced.contains(input))
      return fail(ErrorCode::graph_invalid, "node '{}' reads '{}' before it is produced", node.name(), input->name());
    bool linked = false;
    for (const Use& use : input->uses()) linked |= use.node == &node && use.index == i;
    if (!linked)
      return fail(ErrorCode::graph_invalid, "value '{}' does not know its reader '{}'", input->name(), node.name());
  }
  return {};
}

Result<> verify_uses(const Value& value) {
  for (const Use& use : value.uses())
    if (use.node->input(use.index) != &value)
      return fail(ErrorCode::graph_invalid, "value '{}' lists a reader '{}' that does not read it", value.name(),
                  use.node->name());
  return {};
}

// Types equal to what the shape rules give, which have run on `copy`.
Result<> compare_types(const Graph& graph, const Graph& copy) {
  auto twin = copy.nodes().begin();
  for (const auto& node : graph.nodes()) {
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      const ValueType& stored = node->output(i)->type();
      const ValueType& inferred = (*twin)->output(i)->type();
      if (stored.dtype != inferred.dtype || stored.shape != inferred.shape)
        return fail(ErrorCode::graph_invalid, "value '{}' has type {}, its op gives {}", node->output(i)->name(),
                    to_string(stored, graph), to_string(inferred, copy));
    }
    for (size_t i = 0; i < node->bodies().size(); ++i)
      LATHE_TRY(compare_types(*node->bodies()[i], *(*twin)->bodies()[i]));
    ++twin;
  }
  return {};
}

Result<> verify_structure(const Graph& graph) {
  std::unordered_set<const Value*> produced(graph.inputs().begin(), graph.inputs().end());
  std::unordered_set<std::string_view> names;
  for (const Value* input : graph.inputs()) {
    names.insert(input->name());
    LATHE_TRY(verify_uses(*input));
  }
  for (const auto& node : graph.nodes()) {
    LATHE_TRY(verify_node(*node, produced));
    for (const auto& body : node->bodies()) LATHE_TRY(verify_structure(*body));
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      produced.insert(node->output(i));
      LATHE_TRY(verify_uses(*node->output(i)));
      if (!names.insert(node->output(i)->name()).second)
        return fail(ErrorCode::graph_invalid, "two values are named '{}'", node->output(i)->name());
    }
  }
  for (const Output& output : graph.outputs())
    if (!produced.contains(output.value))
      return fail(ErrorCode::graph_invalid, "output '{}' is a value that no node of this graph produces", output.name);
  return {};
}

}  // namespace

Result<> verify(const Graph& graph) {
  LATHE_TRY(verify_structure(graph));
  Graph copy = graph.clone();  // because rules may create symbols
  LATHE_TRY(copy.infer_all());
  return compare_types(graph, copy);
}

}  // namespace lathe::ir
