// SPDX-License-Identifier: Apache-2.0
#include "lowering/duplicate.h"

#include <algorithm>
#include <set>

#include "lowering/computed_part.h"
#include "lowering/expression_builder.h"
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

// Whether expressions alone read it, perhaps in an order that strides tell.
bool is_for_expressions(const Value* value, bool joins_parts) {
  return !value->is_graph_output() && std::ranges::all_of(value->uses(), [&](const ir::Use& use) {
    const bool moves = use.index == 0 && (is_view_or_transposition(*use.node) || use.node->is(OpKind::slice));
    if (moves) return is_for_expressions(use.node->output(), joins_parts);
    return (use.node->has_trait(kPointwise) && use.node->num_outputs() == 1) ||
           (joins_parts && computed_part(*use.node));
  });
}

bool widens(const Node& node) {
  return node.is(OpKind::cast) && node.output()->dtype() == DType::f32 && is_floating(node.input(0)->dtype()) &&
         size_of(node.input(0)->dtype()) == 2;
}

// Whether what the node makes of it is for a reduction alone.
bool is_for_reduction(const Node& reader) {
  if (reader.has_trait(kReduction)) return true;
  const bool is_read_through = (reader.has_trait(kView) || reader.has_trait(kPointwise)) && reader.num_outputs() == 1;
  return is_read_through && !reader.output()->is_graph_output() && reader.output()->has_single_use() &&
         is_for_reduction(*reader.output()->uses()[0].node);
}

// What reads it through views alone: the last of them, or the value itself.
const Value* behind_views(const Value* value) {
  while (value->has_single_use() && value->uses()[0].node->has_trait(kView)) value = value->uses()[0].node->output();
  return value;
}

// A view of the node's input as `value` is one of its output.
Result<Value*> narrow_view(ir::Graph& graph, const Node& widening, const Value* value, Node* before) {
  if (value == widening.output()) return widening.input(0);
  const Node& view = *value->producer();
  std::vector<Value*> inputs = view.inputs();
  LATHE_ASSIGN(inputs[0], narrow_view(graph, widening, view.input(0), before));
  return graph.add_value(view.attributes(), inputs, {view.name(), view.origin(), {}}, before);
}

// Gives the reader of `value`, which the node widens, a node of its own behind the views that it reads through.
Result<> widen_again(ir::Graph& graph, const Node& widening, const Value* value, Node* reader) {
  while (reader->has_trait(kView)) value = reader->output(), reader = value->uses()[0].node;
  LATHE_ASSIGN(Value * narrow, narrow_view(graph, widening, value, reader));
  LATHE_ASSIGN(Value * wide,
               graph.add_value(widening.attributes(), {narrow}, {widening.name(), widening.origin(), {}}, reader));
  if (wide->shape() != value->shape()) return {};  // a view whose sizes data tell has others each time
  for (const ir::Use& use : std::vector<ir::Use>(value->uses()))
    if (use.node == reader) LATHE_TRY(graph.set_input(reader, use.index, wide));
  return {};
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

Result<> duplicate_widening(ir::Graph& graph) {
  std::vector<const Node*> nodes;
  for (const auto& node : graph.nodes())
    if (widens(*node)) nodes.push_back(node.get());
  for (const Node* node : nodes) {
    const Value* value = behind_views(node->output());
    std::set<Node*> readers;
    for (const ir::Use& use : value->uses()) readers.insert(use.node);
    size_t left = readers.size();
    for (const ir::Use& use : std::vector<ir::Use>(value->uses()))
      if (left > 1 && readers.erase(use.node) > 0 && is_for_reduction(*use.node)) {
        LATHE_TRY(widen_again(graph, *node, value, use.node));
        --left;
      }
  }
  graph.erase_dead_nodes();  // views that nothing reads any more
  return {};
}

// From the last node to the first: what is duplicated has more readers of what it reads.
Result<> duplicate_movement(ir::Graph& graph, const BackendTraits& traits) {
  std::vector<const Node*> nodes;
  std::set<const Node*> parts;
  for (const auto& node : graph.nodes()) {
    if (is_view_or_transposition(*node) || (node->is(OpKind::slice) && traits.fuses_prologues))
      nodes.push_back(node.get());
    const auto part = traits.fuses_prologues ? computed_part(*node) : std::nullopt;
    if (part) parts.insert(part->part);
  }
  std::reverse(nodes.begin(), nodes.end());
  for (const Node* node : nodes)
    if (node->output()->uses().size() > 1 && (takes_a_copy(*node) || parts.contains(node)) &&
        is_for_expressions(node->output(), traits.fuses_prologues))
      LATHE_TRY(duplicate(graph, *node));
  return {};
}

}  // namespace lathe
