// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime makes of GELUs, products and convolutions with what stands around them.
#include <cmath>

#include "onnx/activations.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// x under the activation that a fused operator names. Numbers of it are attributes called activation_alpha and so on.
ir::Value* activated(NodeContext& c, ir::Value* x) {
  const std::string name = c.string("activation", "");
  if (name.empty()) return x;
  const ActivationRow* row = find_activation(name);
  if (!row) {
    c.unsupported("activation '{}' is not supported; give one of ONNX's activations, as Relu", name);
    return x;
  }
  const auto number = [&](std::string_view attribute, double fallback) {
    return attribute.empty() ? fallback : c.real("activation_" + std::string(attribute), fallback);
  };
  const double alpha = number(row->alpha_name, row->alpha), beta = number(row->beta_name, row->beta);
  c.ignore({"activation_alpha", "activation_beta", "activation_gamma"});
  return c.activation(row->op, x, alpha, beta);
}

// A FusedConv has the activation's numbers in one list.
ir::Value* activated_by_list(NodeContext& c, ir::Value* x) {
  const std::string name = c.string("activation", "");
  const std::vector<double> numbers = c.reals("activation_params");
  const auto number = [&](size_t i, double fallback) { return i < numbers.size() ? numbers[i] : fallback; };
  if (name.empty()) return x;
  if (name == "Clip") return c.activation(ActivationOp::clip, x, number(0, -HUGE_VAL), number(1, HUGE_VAL));
  const ActivationRow* row = find_activation(name);
  if (!row) {
    c.unsupported("activation '{}' is not supported; give Clip or one of ONNX's activations, as Relu", name);
    return x;
  }
  return c.activation(row->op, x, number(0, row->alpha), number(1, row->beta));
}

// FusedMatMul's operand: with transBatch its rows are the first dimension, in front of the batch.
ir::Value* rows_behind_batch(NodeContext& c, ir::Value* x, bool transposes_batch) {
  if (!transposes_batch || x->rank() < 3) return x;
  Ints perm;
  for (int64_t i = 1; i < x->rank() - 1; ++i) perm.push_back(i);
  perm.insert(perm.end(), {0, x->rank() - 1});
  return c.transpose(x, perm);
}

}  // namespace

// GELU of x plus a bias, if it has one: by tanh in FastGelu, else by erf.
void import_bias_gelu(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (c.op() == "BiasGelu" || c.has(1)) {
    ir::Value* bias = c.require(1);
    if (!c.failed() && bias->rank() != 1) return c.invalid("the bias has {} dimensions, expected 1", bias->rank());
    x = c.require_shape("the input plus the bias", c.plus(x, bias), c.shape_of(x));
  }
  c.set_output(0, c.activation(c.op() == "FastGelu" ? ActivationOp::gelu_tanh : ActivationOp::gelu_erf, x));
}

void import_quick_gelu(NodeContext& c) {
  const double alpha = c.real("alpha", 1.702F);
  c.set_output(0, c.activation(alpha == 1 ? ActivationOp::silu : ActivationOp::swish, c.require(0), alpha));
}

// The first half of the last dimension times the GELU of the second.
void import_bias_split_gelu(NodeContext& c) {
  ir::Value* x = c.plus(c.require(0), c.require(1));
  const std::optional<int64_t> size = c.dim(x, x->rank() - 1).as_constant();
  if (!c.failed() && (!size || *size % 2 != 0)) return c.unsupported("the last dimension must be known and even");
  if (c.failed()) return;
  ir::Value *left = c.slice(x, -1, 0, *size / 2), *right = c.slice(x, -1, *size / 2, *size);
  c.set_output(0, c.mul(left, c.activation(ActivationOp::gelu_erf, right)));
}

void import_fused_matmul(NodeContext& c) {
  const bool transposes_a = c.flag("transA", false), transposes_b = c.flag("transB", false);
  const double alpha = c.real("alpha", 1);
  ir::Value* a = rows_behind_batch(c, c.require(0), c.flag("transBatchA", false));
  ir::Value* b = rows_behind_batch(c, c.require(1), c.flag("transBatchB", false));
  ir::Value* y = c.matmul(a, b, {.a = transposes_a && a->rank() > 1, .b = transposes_b && b->rank() > 1});
  c.set_output(0, alpha == 1 ? y : c.binary(ElementwiseOp::mul, y, alpha));
}

void import_fused_gemm(NodeContext& c) {
  import_gemm(c);
  if (!c.failed()) c.set_output(0, activated(c, c.outputs()[0].value));
}

// act(X * W + B + Z)
void import_fused_conv(NodeContext& c) {
  import_conv(c);
  if (c.failed()) return;
  ir::Value* y = c.outputs()[0].value;
  if (ir::Value* z = c.input(3)) y = c.require_shape("the convolution plus Z", c.plus(y, z), c.shape_of(y));
  c.set_output(0, activated_by_list(c, y));
}

}  // namespace lathe::onnx
