// SPDX-License-Identifier: Apache-2.0
// Graphs as text; text.cpp describes it and reads it.
#include "base/hash.h"
#include "ir/graph.h"
#include "ir/text_syntax.h"

namespace lathe::ir {
namespace {

std::string quoted_text(std::string_view name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string name_text(std::string_view name) {
  if (name.empty() || name.back() == ':') return quoted_text(name);
  for (char c : name)
    if (!is_name_char(c)) return quoted_text(name);
  return std::string(name);
}

std::string attributes_text(const Node& node, int64_t max_elements) {
  if (!node.is(OpKind::constant)) return to_text(node.attributes());
  const Tensor& value = node.attrs<ConstantAttrs>().value;
  if (value.volume() <= max_elements) return to_text(node.attributes());
  return fmt::format("{{value={}{}{{#{:016x}}}}}", name_of(value.dtype()), lathe::to_string(to_shape(value.dims())),
                     Hasher().add(value.raw()).value());
}

// Inputs, nodes and outputs, a line each but for bodies.
std::string content_text(const Graph& graph, int64_t max_elements, const std::string& indent) {
  std::string out;
  for (const Value* input : graph.inputs())
    out += fmt::format("{}input %{}: {}\n", indent, name_text(input->name()), to_string(input->type(), graph));
  for (const auto& node : graph.nodes()) {
    std::string names, operands, types;
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      names += (i ? ", %" : "%") + name_text(node->output(i)->name());
      types += (i ? ", " : "") + to_string(node->output(i)->type(), graph);
    }
    for (const Value* input : node->inputs())
      operands += (operands.empty() ? "" : ", ") + (input ? "%" + name_text(input->name()) : std::string("_"));
    out += fmt::format("{}{} = {}{}({}): {}", indent, names, node->info().name, attributes_text(*node, max_elements),
                       operands, types);
    if (node->name() != node->output()->name()) out += " @" + name_text(node->name());
    if (node->origin() != std::vector{node->name()}) {
      std::string origin;
      for (const std::string& name : node->origin()) origin += (origin.empty() ? "" : ", ") + name_text(name);
      out += " from [" + origin + "]";
    }
    for (const auto& body : node->bodies())
      out += fmt::format(" body {{\n{}{}}}", content_text(*body, max_elements, indent + "  "), indent);
    out += '\n';
  }
  for (const Output& output : graph.outputs())
    out += fmt::format("{}output %{} {}\n", indent, name_text(output.value->name()), quoted_text(output.name));
  return out;
}

std::string symbol_text(const Graph& graph, const Expr& symbol) {
  return name_text(graph.symbols()[*symbol.as_symbol()].name);
}

}  // namespace

std::string to_text(const Graph& graph, int64_t max_elements) {
  std::string out = fmt::format("graph {} {{\n", quoted_text(graph.name()));
  for (const Symbol& symbol : graph.symbols()) {
    if (symbol.source != SymbolSource::input_dim) continue;
    out += fmt::format("  symbol {} in [{}, {}]\n", name_text(symbol.name), symbol.range.min,
                       symbol.range.max == Range::kUnbounded ? "inf" : std::to_string(symbol.range.max));
  }
  for (const Constraint& expansion : graph.expansions())
    out += fmt::format("  expands {} to {}\n", symbol_text(graph, expansion.a), symbol_text(graph, expansion.b));
  return out + content_text(graph, max_elements, "  ") + "}\n";
}

}  // namespace lathe::ir
