// SPDX-License-Identifier: Apache-2.0
// Operators on quantised tensors of ONNX Runtime's domain, as its quantiser writes them: floats between dequantised
// operands and a quantised result, which passes bring to integer kernels.
#include "onnx/import_window.h"
#include "onnx/importer.h"
#include "onnx/levels.h"
#include "onnx/softmax.h"

namespace lathe::onnx {
namespace {

void refuse_channels_last(NodeContext& c) {
  if (c.flag("channels_last", false)) c.unsupported("channels_last is not supported");
}

// Of one operand, whose result has inputs 3 and 4 as scale and zero point.
void set_result(NodeContext& c, ir::Value* floats) { set_levels(c, floats, 3, 4, c.require(0)->dtype()); }

}  // namespace

// Inputs: two operands, each with scale and zero point, and those of the result.
void import_qlinear_binary(NodeContext& c) {
  ir::Value *a = dequantized(c, {0, 1, 2}), *b = dequantized(c, {3, 4, 5});
  set_levels(c, c.op() == "QLinearAdd" ? c.plus(a, b) : c.mul(a, b), 6, 7, c.require(0)->dtype());
}

void import_qlinear_sigmoid(NodeContext& c) {
  set_result(c, c.activation(ActivationOp::sigmoid, dequantized(c, {0, 1, 2})));
}

void import_qlinear_leaky_relu(NodeContext& c) {
  set_result(c, c.activation(ActivationOp::leaky_relu, dequantized(c, {0, 1, 2}), c.real("alpha", 0.01)));
}

void import_qlinear_softmax(NodeContext& c) {
  const int64_t version = c.require_integer("opset");
  set_result(c, softmax_of(c, dequantized(c, {0, 1, 2}), version));
}

void import_qlinear_average_pool(NodeContext& c) {
  refuse_channels_last(c);
  ir::Value* x = dequantized(c, {0, 1, 2});
  if (const std::optional<PoolingAttrs> attributes = pooling_attributes(c, x, PoolingOp::average))
    set_result(c, c.add(*attributes, {x}));
}

void import_qlinear_global_average_pool(NodeContext& c) {
  refuse_channels_last(c);
  ir::Value* x = dequantized(c, {0, 1, 2});
  if (x->rank() < 3) return c.invalid("the input must have rank 3 or more");
  Ints axes;
  for (int i = 2; i < x->rank(); ++i) axes.push_back(i);
  set_result(c, c.reduce(ReduceOp::mean, x, axes));
}

void import_qlinear_reduce_mean(NodeContext& c) {
  ir::Value* x = dequantized(c, {0, 1, 2});
  Ints axes = c.integers("axes");
  for (int64_t i = 0; axes.empty() && i < x->rank(); ++i) axes.push_back(i);
  set_result(c, c.reduce(ReduceOp::mean, x, axes, c.flag("keepdims", true)));
}

// Channels of the result, groups of which lie along axis 1 of the weights, may have scales of their own.
void import_qlinear_conv_transpose(NodeContext& c) {
  ir::Value *x = dequantized(c, {0, 1, 2}), *w = dequantized(c, {3, 4, 5}, 1);
  const DeconvolutionAttrs attributes = deconvolution_attributes(c, x, w);
  const bool has_scales = c.require(4)->rank() > 0 && c.dim(c.require(4), 0) != Expr(1);
  if (has_scales && attributes.groups != 1)
    return c.unsupported("the weights have scales of channels and group is {}; give one scale", attributes.groups);
  std::vector<ir::Value*> operands{x, w};
  if (ir::Value* bias = c.input(8)) {
    ir::Value* scale = c.mul(single(c, c.require(1)), along(c, c.require(4), 0, 1));
    operands.push_back(c.add(DequantizeAttrs{}, {bias, scale}));
  }
  set_levels(c, c.add(attributes, std::move(operands)), 6, 7, c.require(0)->dtype());
}

// Inputs: scale and zero point of the result, then three for each operand.
void import_qlinear_concat(NodeContext& c) {
  if (c.num_inputs() < 5 || (c.num_inputs() - 2) % 3 != 0)
    return c.invalid("it has {} inputs; two and three for each operand are needed", c.num_inputs());
  std::vector<ir::Value*> operands;
  for (size_t i = 2; i < c.num_inputs(); i += 3) operands.push_back(dequantized(c, {i, i + 1, i + 2}));
  set_levels(c, c.concat(std::move(operands), c.require_integer("axis")), 0, 1, c.require(2)->dtype());
}

void import_qlinear_where(NodeContext& c) {
  ir::Value *a = dequantized(c, {1, 2, 3}), *b = dequantized(c, {4, 5, 6});
  set_levels(c, c.select(c.require(0), a, b), 7, 8, c.require(1)->dtype());
}

// alpha * (op(A) * op(B) + C): C has the scale of the sums. Without a scale of the result it is floats.
void import_qgemm(NodeContext& c) {
  const ir::Transposed transposed{.a = c.flag("transA", false), .b = c.flag("transB", false)};
  const double alpha = c.real("alpha", 1);
  ir::Value *a = dequantized(c, {0, 1, 2}), *b = dequantized(c, {3, 4, 5}, transposed.b ? 0 : 1);
  if (a->rank() != 2 || b->rank() != 2) return c.invalid("A and B must be matrices");
  ir::Value* y = c.matmul(a, b, transposed);
  if (ir::Value* bias = c.input(6)) {
    ir::Value* scale = c.mul(single(c, c.require(1)), along(c, c.require(4), 0, 1));
    y = c.plus(y, c.add(DequantizeAttrs{}, {bias, scale}));
  }
  if (alpha != 1) y = c.binary(ElementwiseOp::mul, y, alpha);
  if (!c.has(7)) return c.set_output(0, y);
  set_levels(c, y, 7, 8, c.require(0)->dtype());
}

}  // namespace lathe::onnx
