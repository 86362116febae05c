// SPDX-License-Identifier: Apache-2.0
// Functions, which are inlined, and the graphs that nodes hold: inlined, or bodies of control flow.
#include <algorithm>

#include "onnx/graph_importer.h"

namespace lathe::onnx {

// A value from outside comes into a body as one more input, unless it is known.
Slot GraphImporter::capture(std::string_view name, Slot outside, Scope& scope) {
  if (!outside.value) return outside;
  if (const Tensor* content = outside.value->constant()) {
    Result<ir::Value*> constant = scope.graph->add_constant(*content, std::string(name));
    if (constant) return scope.values[name] = {*constant, false};
  }
  return scope.values[name] = {scope.captured->inside(outside.value, *scope.graph), false};
}

bool GraphImporter::import_call(const NodeProto& node, const std::string& name, const FunctionProto& function,
                                std::vector<Slot> inputs, Scope& scope) {
  if (support_ && support_->support == Support::native) support_->support = Support::generic;
  CallAttributes call;
  for (const Attribute& attribute : function.attribute_defaults) call[attribute.name] = &attribute;
  for (const Attribute& attribute : node.attributes) {
    const Attribute* value = &attribute;
    if (!attribute.reference.empty()) {
      const auto bound = scope.call ? scope.call->find(attribute.reference) : CallAttributes::const_iterator();
      value = scope.call && bound != scope.call->end() ? bound->second : nullptr;
    }
    if (value) call[attribute.name] = value;
  }
  Scope body;
  body.graph = scope.graph;
  body.call = &call;
  body.prefix = name + "/";
  body.depth = scope.depth + 1;
  body.functions = scope.functions;
  body.functions.emplace_back(function.name);
  for (const OpsetImport& import : function.opset_imports) body.versions[import.domain] = import.version;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    body.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : Slot{};
  bool good = true;
  for (size_t i = 0; i < function.nodes.size(); ++i) good &= import_node(function.nodes[i], i, body);
  for (size_t i = 0; i < std::min(node.outputs.size(), function.outputs.size()); ++i)
    if (!node.outputs[i].empty()) scope.values[node.outputs[i]] = resolve(function.outputs[i], body);
  return good;
}

std::optional<std::vector<ir::Value*>> GraphImporter::import_body(const GraphProto& body,
                                                                  const std::vector<ir::Value*>& inputs,
                                                                  std::string prefix, Scope& outer) {
  Scope scope;
  scope.versions = outer.versions;
  scope.call = outer.call;
  scope.outer = &outer;
  scope.graph = outer.graph;
  scope.functions = outer.functions;
  scope.prefix = std::move(prefix);
  scope.depth = outer.depth + 1;
  for (size_t i = 0; i < inputs.size(); ++i) scope.values[body.inputs[i].name] = {inputs[i], false};
  return import_nodes(body, scope);
}

// Inputs of the body from `first` on are those of the nested graph.
bool GraphImporter::fill_body(const GraphProto& proto, ir::Graph& body, size_t first, ir::Captured& captured,
                              std::string prefix, Scope& outer) {
  Scope scope;
  scope.versions = outer.versions;
  scope.call = outer.call;
  scope.outer = &outer;
  scope.graph = &body;
  scope.captured = &captured;
  scope.functions = outer.functions;
  scope.prefix = std::move(prefix);
  scope.depth = outer.depth + 1;
  for (size_t i = 0; i < proto.inputs.size(); ++i) {
    ir::Value* input = body.inputs()[first + i];
    body.rename(input, scope.prefix + std::string(proto.inputs[i].name));
    scope.values[proto.inputs[i].name] = {input, false};
  }
  const std::optional<std::vector<ir::Value*>> results = import_nodes(proto, scope);
  for (size_t i = 0; results && i < results->size(); ++i)
    body.add_output((*results)[i], std::string(proto.outputs[i].name));
  return results.has_value();
}

std::optional<std::vector<ir::Value*>> GraphImporter::import_nodes(const GraphProto& body, Scope& scope) {
  for (const TensorData& tensor : body.initializers) scope.initializers[tensor.name] = &tensor;
  bool good = true;
  for (size_t i = 0; i < body.nodes.size(); ++i) good &= import_node(body.nodes[i], i, scope);
  std::vector<ir::Value*> outputs;
  for (const ValueInfo& output : body.outputs) outputs.push_back(resolve(output.name, scope).value);
  for (const ir::Value* output : outputs) good &= output != nullptr;
  return good ? std::optional(std::move(outputs)) : std::nullopt;
}

}  // namespace lathe::onnx
