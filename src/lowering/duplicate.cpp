// SPDX-License-Identifier: Apache-2.0
#include "lowering/duplicate.h"

#include <algorithm>

#include "passes/stays_packed.h"

namespace lathe {

using ir::Node;
using ir::Value;

namespace {

Result<> duplicate(ir::Graph& graph, const Node& node) {
  const std::vector<ir::Use> uses = node.output()->uses();
  for (size_t i = node.output()->is_graph_output() ? 0 : 1; i < uses.size(); ++i) {
    LATHE_ASSIGN(Value * copy,
                 graph.add_value(node.attributes(), node.inputs(), {node.name(), node.origin(), {}}, uses[i].node));
    LATHE_TRY(graph.set_input(uses[i].node, uses[i].index, copy));
  }
  return {};
}

bool is_view_or_transposition(const Node& node) { return node.has_trait(kView) || node.is(OpKind::transpose); }

// Whether storing it would take a copy: it is transposed, or a view of what is transposed or a slice.
bool takes_a_copy(const Node& node) {
  if (!node.has_trait(kView)) return node.is(OpKind::transpose);
  const Node* producer = node.input(0)->producer();
  return producer && (producer->has_trait(kCuts) || takes_a_copy(*producer));
}

// Whether expressions alone read it, perhaps in an order that strides tell.
bool is_for_expressions(const Value* value) {
  return !value->is_graph_output() && std::all_of(value->uses().begin(), value->uses().end(), [](const ir::Use& use) {
    const bool moves = use.index == 0 && (is_view_or_transposition(*use.node) || use.node->is(OpKind::slice));
    return moves ? is_for_expressions(use.node->output())
                 : use.node->has_trait(kPointwise) && use.node->num_outputs() == 1;
  });
}

}  // namespace

Result<> duplicate_dequantization(ir::Graph& graph, const BackendTraits& traits) {
  std::vector<const Node*> nodes;
  for (const auto& node : graph.nodes()) {
    const bool is_of_bytes = node->is(OpKind::dequantize) && is_byte_integer(node->input(0)->dtype());
    if ((is_of_bytes && traits.fuses_narrow_types) || stays_packed(*node, traits.arithmetic))
      nodes.push_back(node.get());
  }
  for (const Node* node : nodes) LATHE_TRY(duplicate(graph, *node));
  return {};
}

// From the last node to the first: what is duplicated has more readers of what it reads.
Result<> duplicate_movement(ir::Graph& graph) {
  std::vector<const Node*> nodes;
  for (const auto& node : graph.nodes())
    if (is_view_or_transposition(*node)) nodes.push_back(node.get());
  std::reverse(nodes.begin(), nodes.end());
  for (const Node* node : nodes)
    if (node->output()->uses().size() > 1 && takes_a_copy(*node) && is_for_expressions(node->output()))
      LATHE_TRY(duplicate(graph, *node));
  return {};
}

}  // namespace lathe
