// SPDX-License-Identifier: Apache-2.0
// Functions, which are inlined, and the graphs that nodes hold: inlined, or bodies of control flow.
#include <algorithm>

#include "onnx/graph_importer.h"

namespace lathe::onnx {

// A value from outside becomes one more input of the body; a constant is copied into it.
ir::Value* GraphImporter::capture_value(std::string_view name, ir::Value* value, Scope& scope) {
  if (const Tensor* content = value->constant())
    if (Result<ir::Value*> constant = scope.graph->add_constant(*content, std::string(name))) return *constant;
  return scope.captured->inside(value, *scope.graph);
}

// The slot with each of its tensors captured.
Slot GraphImporter::captured(std::string_view name, Slot outside, Scope& scope) {
  if (outside.value) outside.value = capture_value(name, outside.value, scope);
  if (outside.text) outside.text = capture_value(name, outside.text, scope);
  if (outside.sequence) {
    Sequence inside = *outside.sequence;
    for (ir::Value*& element : inside.elements) element = capture_value(name, element, scope);
    outside = to_slot(std::move(inside));
  }
  if (outside.open) {
    TensorList inside = *outside.open;
    for (ir::Value** part : {&inside.rows, &inside.dims}) *part = capture_value(name, *part, scope);
    outside = to_slot(inside);
  }
  if (outside.maybe)
    outside = to_slot(MaybeElement{capture_value(name, outside.maybe->is_there, scope),
                                   captured(name, outside.maybe->element, scope)});
  return outside;
}

Slot GraphImporter::capture(std::string_view name, const Slot& outside, Scope& scope) {
  const Slot inside = captured(name, outside, scope);
  return inside.is_defined() ? scope.values[name] = inside : inside;
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

std::optional<std::vector<Slot>> GraphImporter::import_body(const GraphProto& body, const std::vector<Slot>& inputs,
                                                            std::string prefix, Scope& outer) {
  Scope scope;
  scope.versions = outer.versions;
  scope.call = outer.call;
  scope.outer = &outer;
  scope.graph = outer.graph;
  scope.functions = outer.functions;
  scope.prefix = std::move(prefix);
  scope.depth = outer.depth + 1;
  for (size_t i = 0; i < inputs.size(); ++i) scope.values[body.inputs[i].name] = inputs[i];
  return import_nodes(body, scope);
}

bool GraphImporter::fill_body(const GraphProto& proto, ir::GraphBuilder& inside, ir::Captured& captured,
                              const BodyEdge& edge, std::string prefix, Scope& outer) {
  Scope scope;
  scope.versions = outer.versions;
  scope.call = outer.call;
  scope.outer = &outer;
  scope.graph = &inside.graph();
  scope.captured = &captured;
  scope.functions = outer.functions;
  scope.prefix = std::move(prefix);
  scope.depth = outer.depth + 1;
  const std::vector<Slot> inputs = edge.inputs(inside);
  if (inside.failed()) return false;
  if (inputs.size() != proto.inputs.size()) {
    inside.set_error({ErrorCode::model_invalid,
                      fmt::format("its graph has {} inputs, expected {}", proto.inputs.size(), inputs.size()),
                      {}});
    return false;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = proto.inputs[i].name;
    ir::Value* tensor = inputs[i].text ? inputs[i].text : inputs[i].value;
    if (tensor && !tensor->producer()) inside.graph().rename(tensor, scope.prefix + std::string(name));
    scope.values[name] = inputs[i];
  }
  const std::optional<std::vector<Slot>> outputs = import_nodes(proto, scope);
  if (outputs) edge.outputs(inside, *outputs);
  return outputs && !inside.failed();
}

// Too many nodes are final: others would not be imported, either.
bool GraphImporter::attempt(const std::function<bool()>& work) {
  const auto num_before = static_cast<ptrdiff_t>(problems_.size());
  const std::optional<NodeSupport> support = support_ ? std::optional(*support_) : std::nullopt;
  if (work() || num_nodes_ > max_nodes_) return true;
  problems_.erase(problems_.begin() + num_before, problems_.end());
  if (support_) *support_ = *support;
  return false;
}

std::optional<std::vector<Slot>> GraphImporter::import_nodes(const GraphProto& body, Scope& scope) {
  for (const TensorData& tensor : body.initializers) scope.initializers[tensor.name] = &tensor;
  bool good = true;
  for (size_t i = 0; i < body.nodes.size(); ++i) good &= import_node(body.nodes[i], i, scope);
  std::vector<Slot> outputs;
  for (const ValueInfo& output : body.outputs) outputs.push_back(resolve(output.name, scope));
  for (const Slot& output : outputs) good &= output.is_defined() && !output.blocked;
  return good ? std::optional(std::move(outputs)) : std::nullopt;
}

}  // namespace lathe::onnx
