// SPDX-License-Identifier: Apache-2.0
#include "onnx/qdq_writer.h"

#include <algorithm>

#include "ops/rules.h"

namespace lathe::onnx {
namespace {

// Calls visit(name) for each value that nodes of the graph, and of those nested in it, read, and for its outputs.
template <class Visit>
void for_each_read(const GraphProto& graph, Visit&& visit) {
  for (const NodeProto& node : graph.nodes) {
    for (const std::string_view input : node.inputs) visit(input);
    for (const Attribute& attribute : node.attributes)
      for (const GraphProto& nested : attribute.graphs) for_each_read(nested, visit);
  }
  for (const ValueInfo& output : graph.outputs) visit(output.name);
}

template <class Visit>
void for_each_made(const GraphProto& graph, Visit&& visit) {
  for (const TensorData& tensor : graph.initializers) visit(tensor.name);
  for (const ValueInfo& input : graph.inputs) visit(input.name);
  for (const NodeProto& node : graph.nodes) {
    for (const std::string_view output : node.outputs) visit(output);
    for (const Attribute& attribute : node.attributes)
      for (const GraphProto& nested : attribute.graphs) for_each_made(nested, visit);
  }
}

bool says_sizes(const NodeProto& node) { return node.op_type == "Shape" || node.op_type == "Size"; }

Result<Tensor> filled(DType type, const Dims& dims, double value) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(type, dims));
  from_doubles(std::vector<double>(static_cast<size_t>(tensor.volume()), value), tensor);
  return tensor;
}

}  // namespace

QdqWriter::QdqWriter(const Model& model) : model_(model) {
  const auto take = [&](std::string_view name) { names_.emplace(name); };
  for_each_made(model.graph, take);
  for_each_read(model.graph, take);
  for (const NodeProto& node : model.graph.nodes) take(node.name);
}

std::string QdqWriter::fresh(std::string name) {
  for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", name, i);
  return name;
}

std::string QdqWriter::add_constant(std::string name, Tensor content) {
  return edits_.initializers.emplace_back(NewInitializer{fresh(std::move(name)), std::move(content)}).name;
}

NewNode QdqWriter::dequantize(const std::string& tensor, std::string levels, std::string scale,
                              std::string zero_point) {
  return {"DequantizeLinear",
          fresh(tensor + "_DequantizeLinear"),
          {std::move(levels), std::move(scale), std::move(zero_point)},
          fresh(tensor + "_dequantized"),
          std::nullopt};
}

Result<> QdqWriter::round(std::string_view tensor, const Tensor& scale, const Tensor& zero_point,
                          const std::set<size_t>& floats) {
  std::vector<std::pair<size_t, size_t>> readers;
  for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
    const NodeProto& node = model_.graph.nodes[i];
    if (floats.contains(i) || says_sizes(node)) continue;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == tensor) readers.emplace_back(i, k);
  }
  if (readers.empty()) return {};
  const std::string name(tensor);
  const std::string step = add_constant(name + "_scale", scale), zero = add_constant(name + "_zero_point", zero_point);
  NewNode quantize{
      "QuantizeLinear", fresh(name + "_QuantizeLinear"), {name, step, zero}, fresh(name + "_quantized"), {}};
  NewNode floats_again = dequantize(name, quantize.output, step, zero);
  for (const auto& reader : readers) edits_.inputs[reader] = floats_again.output;
  std::vector<NewNode>& before = edits_.before[readers.front().first];
  before.push_back(std::move(quantize));
  before.push_back(std::move(floats_again));
  return {};
}

Result<> QdqWriter::replace(size_t node, size_t input, const Tensor& levels, const Tensor& scale, double zero,
                            std::optional<int64_t> axis) {
  const std::string name(model_.graph.nodes[node].inputs[input]);
  auto known = std::ranges::find_if(replaced_, [&](const Replaced& other) {
    return other.tensor == name && other.axis == axis && identical(other.scale, scale);
  });
  if (known == replaced_.end()) {
    const Dims dims = axis ? Dims{scale.volume()} : Dims{};
    LATHE_ASSIGN(Tensor zero_point, filled(levels.dtype(), dims, zero));
    std::string constant = add_constant(name + "_quantized", levels);
    std::string step = add_constant(name + "_scale", scale.reshaped(dims));
    NewNode floats = dequantize(name, std::move(constant), std::move(step),
                                add_constant(name + "_zero_point", std::move(zero_point)));
    floats.axis = axis;
    known = replaced_.insert(replaced_.end(), {name, axis, scale, floats.output});
    edits_.before[node].push_back(std::move(floats));
  }
  edits_.inputs[{node, input}] = known->floats;
  return {};
}

ModelEdits QdqWriter::take() {
  std::set<std::string_view> read;
  const auto note = [&](std::string_view name) { read.insert(name); };
  for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
    const NodeProto& node = model_.graph.nodes[i];
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (!edits_.inputs.contains({i, k})) note(node.inputs[k]);
    for (const Attribute& attribute : node.attributes)
      for (const GraphProto& nested : attribute.graphs) for_each_read(nested, note);
  }
  for (const ValueInfo& output : model_.graph.outputs) note(output.name);
  for (const ValueInfo& input : model_.graph.inputs) note(input.name);  // initializers that are defaults
  for (const auto& changed : edits_.inputs) {
    const std::string_view name = model_.graph.nodes[changed.first.first].inputs[changed.first.second];
    if (!read.contains(name)) edits_.dropped.emplace(name);
  }
  return std::move(edits_);
}

}  // namespace lathe::onnx
