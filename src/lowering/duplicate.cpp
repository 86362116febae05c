// SPDX-License-Identifier: Apache-2.0
#include "lowering/duplicate.h"

namespace lathe {

Result<> give_readers_their_own(ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::dequantize) && is_byte_integer(node->input(0)->dtype())) nodes.push_back(node.get());
  for (ir::Node* node : nodes) {
    const std::vector<ir::Use> uses = node->output()->uses();
    for (size_t i = node->output()->is_graph_output() ? 0 : 1; i < uses.size(); ++i) {
      LATHE_ASSIGN(ir::Value * copy, graph.add_value(node->attributes(), node->inputs(),
                                                     {node->name(), node->origin(), {}}, uses[i].node));
      LATHE_TRY(graph.set_input(uses[i].node, uses[i].index, copy));
    }
  }
  return {};
}

}  // namespace lathe
