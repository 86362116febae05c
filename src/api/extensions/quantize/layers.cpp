// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/quantize/layers.h"

#include <algorithm>
#include <unordered_map>

#include "quantization/quantize_products.h"

namespace lathe::api::quantize {
namespace {

using Constants = std::unordered_map<std::string_view, const Tensor*>;

bool is_product(const onnx::NodeProto& node) {
  constexpr std::string_view kProducts[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  return onnx::normal_domain(node.domain).empty() && std::ranges::find(kProducts, node.op_type) != std::end(kProducts);
}

bool is_one(const onnx::NodeProto& node, std::string_view factor) {
  const onnx::Attribute* attribute = node.find(factor);
  return !attribute || attribute->real == 1;
}

// What sums of products are added to, in their scale.
std::optional<Tensor> bias_of(const onnx::NodeProto& node, int64_t channels, const Constants& constants) {
  if (node.inputs.size() < 3 || !is_one(node, "alpha") || !is_one(node, "beta")) return std::nullopt;
  const auto found = constants.find(node.inputs[2]);
  if (found == constants.end() || found->second->rank() != 1 || found->second->volume() != channels)
    return std::nullopt;
  return *found->second;
}

std::string reason_of(const onnx::NodeProto& node, const Constants& constants) {
  if (node.op_type == "ConvTranspose") return "transposed convolutions are not quantised";
  const bool constant_weights = node.inputs.size() > 1 && constants.contains(node.inputs[1]);
  if (!constant_weights) return "it multiplies two tensors that are computed; only constant weights are quantised";
  return "integers of these types and shapes are not multiplied";
}

// Nodes of the main graph by the names that they have in the network.
std::unordered_map<std::string, std::vector<size_t>> nodes_by_name(const onnx::GraphProto& graph) {
  std::unordered_map<std::string, std::vector<size_t>> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_product(graph.nodes[i])) nodes[onnx::name_of(graph.nodes[i], i)].push_back(i);
  return nodes;
}

}  // namespace

Result<std::vector<ProductLayer>> find_layers(const onnx::Model& model, ir::Graph& network) {
  PassContext context;
  context.arithmetic.integer_products = true;  // on any target
  LATHE_TRY(run_pass("fold_constants", network, context));
  Constants constants;
  for (const auto& node : network.nodes())
    if (node->num_outputs() == 1 && node->output()->constant())
      constants.emplace(node->output()->name(), node->output()->constant());
  std::vector<ProductLayer> layers;
  std::unordered_map<size_t, size_t> places;  // of nodes among the layers
  const std::vector<onnx::NodeProto>& nodes = model.graph.nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_product(nodes[i])) continue;
    places.emplace(i, layers.size());
    layers.push_back(
        {i, onnx::name_of(nodes[i], i), std::string(nodes[i].op_type), reason_of(nodes[i], constants), {}, {}, 0, {}});
  }
  auto by_name = nodes_by_name(model.graph);
  LATHE_ASSIGN(const std::vector<const ir::Node*> products, quantizable_products(network, context));
  for (const ir::Node* product : products) {
    const auto named = by_name.find(product->origin().front());
    if (named == by_name.end() || named->second.empty()) continue;  // it is of a function, or of another operator
    ProductLayer& layer = layers[places.at(named->second.front())];
    named->second.erase(named->second.begin());
    if (product->input(0)->dtype() != DType::f32) {
      layer.why = fmt::format("it multiplies {}; quantise the model of f32", name_of(product->input(0)->dtype()));
      continue;
    }
    layer.why.clear();
    layer.tensor = product->input(0)->name();
    layer.weights = *product->input(1)->constant();
    layer.channels = channels_of_weights(*product);
    layer.bias = bias_of(nodes[layer.node], layer.weights.dims()[layer.channels], constants);
  }
  return layers;
}

}  // namespace lathe::api::quantize
