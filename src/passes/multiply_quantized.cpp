// SPDX-License-Identifier: Apache-2.0
// Products of dequantised operands become products of their integers; one dequantisation of the sums follows.
#include <algorithm>

#include "ops/rules.h"
#include "passes/linear.h"
#include "passes/pins.h"
#include "passes/quantization.h"

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

// The integers with what the convolution has beyond their ends, which are levels that stand for 0. Takes the pads from
// its attributes: its own are zeros.
ir::Value* padded(Rewrite& r, const Dequantized& x, ConvolutionAttrs& attrs) {
  const auto is_zero = [](int64_t pad) { return pad == 0; };
  Ints pads(static_cast<size_t>(x.integers->rank()) * 2, 0);
  const size_t spatial = pads.size() / 2 - 2;
  std::copy(attrs.pads_begin.begin(), attrs.pads_begin.end(), pads.begin() + 2);
  std::copy(attrs.pads_end.begin(), attrs.pads_end.end(), pads.end() - static_cast<ptrdiff_t>(spatial));
  if (std::all_of(pads.begin(), pads.end(), is_zero)) return x.integers;
  attrs.pads_begin.clear();
  attrs.pads_end.clear();
  return r.add(PadAttrs{}, {x.integers, r.ints(pads), r.constant(x.zero_point->constant()->reshaped({}))});
}

// The product of the integers. Its sums are of integers that are larger by the zero point.
ir::Value* product_of(Rewrite& r, const QuantizedProduct& product) {
  if (!r.node->is(OpKind::convolution) || !product.x.zero_point)
    return r.add(r.node->attributes(), {product.x.integers, product.w.integers});
  ConvolutionAttrs attrs = r.node->attrs<ConvolutionAttrs>();
  ir::Value* x = padded(r, product.x, attrs);
  return r.add(std::move(attrs), {x, product.w.integers});
}

Result<bool> multiply(Rewrite& r) {
  if (!r.context.arithmetic.integer_products || keeps_floats(*r.node, r.context)) return false;
  const std::optional<QuantizedProduct> product = quantized_product(*r.node, r.context);
  if (!product) return false;
  r.absorb(product->x.node);
  r.absorb(product->w.node);
  ir::Value* sums = product_of(r, *product);
  Result<Tensor> scale = product->scale.size() == 1
                             ? Tensor::of<float>({}, {static_cast<float>(product->scale[0])})
                             : channel_tensor(DType::f32, product->scale, r.output()->rank(), product->axis);
  ir::Value* factor = r.constant(std::move(scale));
  DequantizeAttrs attrs;
  attrs.to = r.output()->dtype();
  std::vector<ir::Value*> operands = {sums, factor};
  if (!product->zero_point.empty()) {
    Dims dims(static_cast<size_t>(r.output()->rank()) - product->axis, 1);
    dims[0] = static_cast<int64_t>(product->zero_point.size());
    LATHE_ASSIGN(Tensor zero_point, Tensor::allocate(DType::i32, dims));
    std::copy(product->zero_point.begin(), product->zero_point.end(), zero_point.mutable_as<int32_t>());
    operands.push_back(r.constant(std::move(zero_point)));
  }
  ir::Value* result = r.add(attrs, std::move(operands));
  if (ir::Value* bias = r.node->is(OpKind::convolution) ? r.input(2) : nullptr)
    result = r.plus(result, channel_bias(r, bias));
  return r.finish(result);
}

}  // namespace

Result<bool> multiply_quantized(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"conv(dequantize(p, s), dequantize(q, t), b) = dequantize(conv(p, q), s * t) + b", OpKind::convolution,
       multiply},
      {"matmul(dequantize(p, s), dequantize(q, t)) = dequantize(matmul(p, q), s * t)", OpKind::matmul, multiply},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
