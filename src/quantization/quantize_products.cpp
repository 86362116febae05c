// SPDX-License-Identifier: Apache-2.0
#include "quantization/quantize_products.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "ops/rules.h"
#include "passes/pins.h"
#include "passes/quantization.h"
#include "quantization/level_range.h"

namespace lathe {
namespace {

// What the node multiplies by constant weights, both of one type of floats.
bool is_weighted_product(const ir::Node& node) {
  if (!node.is(OpKind::convolution) && !node.is(OpKind::matmul)) return false;
  const ir::Value *x = node.input(0), *w = node.input(1);
  return !x->content() && w->constant() && is_floating(x->dtype()) && x->dtype() == w->dtype() && w->rank() >= 2;
}

DequantizeAttrs to_floats(DType dtype) {
  DequantizeAttrs attrs;
  attrs.to = dtype;
  return attrs;
}

// The largest magnitude at each position of the axis, or of all.
std::vector<double> largest_magnitudes(const Tensor& weights, std::optional<size_t> axis) {
  const Dims& dims = weights.dims();
  int64_t inner = 1;
  for (size_t d = axis ? *axis + 1 : 0; d < dims.size(); ++d) inner *= dims[d];
  std::vector<double> largest(axis ? static_cast<size_t>(dims[*axis]) : 1);
  const std::vector<double> values = to_doubles(weights);
  for (size_t i = 0; i < values.size(); ++i) {
    double& own = largest[i / static_cast<size_t>(inner) % largest.size()];
    own = std::max(own, std::fabs(values[i]));
  }
  return largest;
}

// The names of those products that the target would multiply in integers, were their operands quantised.
Result<std::set<std::string>> integer_products(const ir::Graph& network, PassContext& context) {
  ir::Graph graph = network.clone();
  std::vector<ir::Node*> products;
  for (const auto& node : graph.nodes())
    if (is_weighted_product(*node) && !keeps_floats(*node, context)) products.push_back(node.get());
  std::set<std::string> names;
  for (ir::Node* node : products) {
    ir::GraphBuilder b(graph, {node->name(), {}, {}}, node);
    ir::Value *x = node->input(0), *w = node->input(1), *scale = b.scalar_like(1, x);
    ir::Value* levels = b.constant(Tensor::allocate(DType::i8, w->constant()->dims()));
    const DequantizeAttrs floats = to_floats(x->dtype());
    ir::Value* operands[] = {b.add(floats, {b.add(QuantizeAttrs{}, {x, scale}), scale}),
                             b.add(floats, {levels, scale})};
    if (b.failed()) return fail(*b.error());
    for (size_t i = 0; i < 2; ++i) LATHE_TRY(graph.set_input(node, i, operands[i]));
    if (quantized_product(*node, context)) names.insert(node->name());
  }
  return names;
}

// A tensor and the products that read it.
struct Operand {
  ir::Value* x;
  std::vector<ir::Node*> products;
};

std::vector<Operand> operands_of(const ir::Graph& graph, const std::set<std::string>& products) {
  std::vector<Operand> operands;
  std::unordered_map<const ir::Value*, size_t> places;
  for (const auto& node : graph.nodes()) {
    if (!products.contains(node->name())) continue;
    const auto [place, is_new] = places.emplace(node->input(0), operands.size());
    if (is_new) operands.push_back({node->input(0), {}});
    operands[place->second].products.push_back(node.get());
  }
  return operands;
}

Result<> quantize_weights(ir::Graph& graph, ir::Node* node) {
  const Tensor& weights = *node->input(1)->constant();
  LATHE_ASSIGN(const WeightLevels quantized, levels_of_weights(weights, channels_of_weights(*node)));
  ir::GraphBuilder b(graph, {node->input(1)->name(), node->origin(), {}}, node);
  ir::Value* floats = b.add(to_floats(weights.dtype()), {b.constant(quantized.levels), b.constant(quantized.scales)});
  if (b.failed()) return fail(*b.error());
  return graph.set_input(node, 1, floats);
}

// Readers take the levels of x; who reads its sizes alone, and bodies of control flow, take x as it is.
Result<> hold_in_levels(ir::Graph& graph, ir::Value* x, double scale, ir::Node* first_reader) {
  std::vector<ir::Use> readers;
  for (const ir::Use& use : x->uses())
    if (!says_sizes(use.node->info(), use.index) && use.node->bodies().empty()) readers.push_back(use);
  ir::GraphBuilder b(graph, {x->name(), first_reader->origin(), {}}, first_reader);
  ir::Value* factor = b.scalar_like(scale, x);
  ir::Value* floats = b.add(to_floats(x->dtype()), {b.add(QuantizeAttrs{}, {x, factor}), factor});
  if (b.failed()) return fail(*b.error());
  for (const ir::Use& use : readers) LATHE_TRY(graph.set_input(use.node, use.index, floats));
  return {};
}

}  // namespace

bool is_quantized(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) {
    return node->has_trait(kQuantization) || std::ranges::any_of(node->inputs(), [](const ir::Value* input) {
             return input && input->dtype() == DType::i8;
           });
  });
}

size_t channels_of_weights(const ir::Node& product) {
  if (product.is(OpKind::convolution)) return 0;
  return static_cast<size_t>(product.input(1)->rank() - (product.attrs<MatmulAttrs>().transpose_b ? 2 : 1));
}

Result<WeightLevels> levels_of_weights(const Tensor& weights, std::optional<size_t> axis, DType type) {
  std::vector<double> steps = largest_magnitudes(weights, axis);
  for (double& each : steps) each = each > 0 ? each / largest_level(type) : 1;
  Dims broadcast(weights.dims().size(), 1);
  if (axis) broadcast[*axis] = weights.dims()[*axis];
  WeightLevels quantized;
  LATHE_ASSIGN(quantized.scales, Tensor::allocate(weights.dtype(), std::move(broadcast)));
  from_doubles(steps, quantized.scales);
  QuantizeAttrs attrs;
  attrs.to = type;
  std::vector<Tensor> operands{weights, quantized.scales};
  if (type == DType::u8) {
    LATHE_ASSIGN(Tensor zero_point, Tensor::allocate(type, {}));
    const auto middle = static_cast<double>(middle_level(type));
    from_doubles({&middle, 1}, zero_point);
    operands.push_back(std::move(zero_point));
  }
  LATHE_ASSIGN(std::vector<Tensor> levels, run_op(attrs, operands, 1));
  quantized.levels = std::move(levels[0]);
  return quantized;
}

Result<std::vector<const ir::Node*>> quantizable_products(const ir::Graph& graph, PassContext& context) {
  LATHE_ASSIGN(const std::set<std::string> names, integer_products(graph, context));
  std::vector<const ir::Node*> products;
  for (const auto& node : graph.nodes())
    if (names.contains(node->name())) products.push_back(node.get());
  return products;
}

Result<QuantizedNetwork> quantize_products(ir::Graph& graph, const TensorScales& scales, PassContext& context) {
  LATHE_ASSIGN(const std::set<std::string> products, integer_products(graph, context));
  std::unordered_map<const ir::Node*, size_t> order;
  for (const auto& node : graph.nodes()) order.emplace(node.get(), order.size());
  QuantizedNetwork network;
  for (const Operand& operand : operands_of(graph, products)) {
    const auto scale = scales.find(operand.x->name());
    if (scale == scales.end() || scale->second == 0) {
      network.unknown.push_back(operand.x->name());
      continue;
    }
    for (ir::Node* node : operand.products) LATHE_TRY(quantize_weights(graph, node));
    const auto first =
        std::ranges::min_element(operand.x->uses(), {}, [&](const ir::Use& use) { return order.at(use.node); });
    LATHE_TRY(hold_in_levels(graph, operand.x, scale->second, first->node));
    network.tensors.push_back(operand.x->name());
    network.products += operand.products.size();
  }
  graph.erase_dead_nodes();
  return network;
}

Result<std::vector<std::string>> quantizable_tensors(const ir::Graph& graph, PassContext& context) {
  LATHE_ASSIGN(const std::set<std::string> products, integer_products(graph, context));
  std::vector<std::string> tensors;
  for (const Operand& operand : operands_of(graph, products)) tensors.push_back(operand.x->name());
  return tensors;
}

}  // namespace lathe
