// SPDX-License-Identifier: Apache-2.0
// Products of dequantised operands become products of their integers; one dequantisation of the sums follows.
#include <algorithm>

#include "passes/dequantize_sums.h"
#include "passes/linear.h"
#include "passes/pins.h"
#include "passes/quantization.h"
#include "passes/scaled_product.h"
#include "passes/zero_points.h"

namespace lathe {
namespace {

// A bias of a convolution, laid along its channels.
ir::Value* channel_bias(Rewrite& r, ir::Value* bias) {
  const int rank = r.output()->rank();
  if (const Tensor* content = bias->constant()) {
    Dims dims(static_cast<size_t>(rank) - 1, 1);
    dims[0] = content->dims()[0];
    return r.constant(content->reshaped(dims));
  }
  Ints dims(static_cast<size_t>(rank) - 1, 1);
  dims[0] = -1;
  return r.reshape(bias, dims);
}

Result<bool> multiply(Rewrite& r) {
  if (keeps_floats(*r.node, r.context)) return false;
  const std::optional<QuantizedProduct> product = quantized_product(*r.node, r.context);
  if (!product) return false;
  r.context.notes.erase(r.output()->name());
  r.absorb(product->x.node);
  r.absorb(product->w.node);
  Result<Tensor> scale = product->scale.size() == 1
                             ? Tensor::of<float>({}, {static_cast<float>(product->scale[0])})
                             : channel_tensor(DType::f32, product->scale, r.output()->rank(), product->axis);
  if (is_factor_float8(product->x.integers->dtype())) {
    ir::Value* sums = r.add(r.node->attributes(), {product->x.integers, product->w.integers});
    ir::Value* factors = r.constant(std::move(scale));
    if (r.output()->dtype() == DType::f32) return r.finish(r.mul(sums, factors));
    DequantizeAttrs attributes;
    attributes.to = r.output()->dtype();
    return r.finish(r.add(attributes, {sums, factors}));
  }
  LATHE_ASSIGN(const IntegerFactors factors, integer_factors(r, *product));
  LATHE_ASSIGN(ir::Value * result, dequantized_sums(r, *product, factors, std::move(scale)));
  if (ir::Value* bias = r.node->is(OpKind::convolution) ? r.input(2) : nullptr)
    result = r.plus(result, channel_bias(r, bias));
  return r.finish(result);
}

// Of 8-bit floats in blocks along K, with a scale each.
Result<bool> multiply_scaled(Rewrite& r) {
  if (keeps_floats(*r.node, r.context)) return false;
  const std::optional<ScaledProduct> product = scaled_product(*r.node, r.graph().symbol_ranges(), r.context);
  if (!product) return false;
  r.context.notes.erase(r.output()->name());
  LATHE_ASSIGN(ir::Value * sums, scaled_sums(r, *product));
  return r.finish(r.cast(sums, r.output()->dtype()));
}

// Of a product that is none of levels.
void find_reason(const ir::Node& node, const ir::Graph& graph, const PassContext& context, std::string& why) {
  if (is_scaled_by_blocks(node))
    scaled_product(node, graph.symbol_ranges(), context, &why);
  else
    quantized_product(node, context, &why);
}

// In a quantised network: why products are of floats. Other passes dequantise constants when this one has left them:
// then what an earlier run has found holds.
void note_float_products(const ir::Graph& graph, PassContext& context) {
  const bool is_quantized =
      std::ranges::any_of(graph.nodes(), [](const auto& node) { return node->has_trait(kQuantization); });
  if (!is_quantized) return;
  for (const auto& node : graph.nodes()) {
    if ((!node->is(OpKind::convolution) && !node->is(OpKind::matmul)) || !is_floating(node->output()->dtype()) ||
        !is_floating(node->input(0)->dtype()))
      continue;
    std::string why = "the target multiplies floats only";
    if (context.arithmetic.integer_products || context.arithmetic.float8_products) {
      why = "it is told to compute in floats";
      if (!keeps_floats(*node, context)) find_reason(*node, graph, context, why);
    }
    const bool is_candidate =
        is_scaled_by_blocks(*node) || (dequantized(node->input(0)) && dequantized(node->input(1)));
    std::string& note = context.notes[node->output()->name()];
    if (is_candidate || note.empty()) note = "multiplies floats: " + why;
  }
}

}  // namespace

Result<bool> multiply_quantized(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"conv(dequantize(p, s), dequantize(q, t), b) = dequantize(conv(p, q), s * t) + b", OpKind::convolution,
       multiply},
      {"matmul(dequantize(p, s), dequantize(q, t)) = dequantize(matmul(p, q), s * t)", OpKind::matmul, multiply},
      {"matmul(dequantize(p, s by blocks), dequantize(q, t by blocks)) = scaled_matmul(p, q, s, t)", OpKind::matmul,
       multiply_scaled},
      {"cast(matmul(p, q) - z) * s = dequantize(matmul(p, q), s, z)", OpKind::elementwise, dequantize_sums},
      {"dequantize(matmul(p, q) - y, s, z) = dequantize(matmul(p, q), s, y + z)", OpKind::dequantize, join_zero_points},
  };
  LATHE_ASSIGN(const bool changed, apply_rules(graph, context, rules));
  note_float_products(graph, context);
  return changed;
}

}  // namespace lathe
