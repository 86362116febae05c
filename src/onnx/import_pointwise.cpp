// SPDX-License-Identifier: Apache-2.0
// Operators of one operand that work element by element.
#include <algorithm>
#include <cmath>

#include "onnx/activations.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

struct UnaryRow {
  std::string_view name;
  UnaryOp op;
};
constexpr UnaryRow kUnary[] = {
    {"Abs", UnaryOp::abs},
    {"Neg", UnaryOp::neg},
    {"Exp", UnaryOp::exp},
    {"Log", UnaryOp::log},
    {"Sqrt", UnaryOp::sqrt},
    {"Sin", UnaryOp::sin},
    {"Cos", UnaryOp::cos},
    {"Tan", UnaryOp::tan},
    {"Sinh", UnaryOp::sinh},
    {"Cosh", UnaryOp::cosh},
    {"Asin", UnaryOp::asin},
    {"Acos", UnaryOp::acos},
    {"Atan", UnaryOp::atan},
    {"Asinh", UnaryOp::asinh},
    {"Acosh", UnaryOp::acosh},
    {"Atanh", UnaryOp::atanh},
    {"Ceil", UnaryOp::ceil},
    {"Floor", UnaryOp::floor},
    {"Round", UnaryOp::round},
    {"Erf", UnaryOp::erf},
    {"Sign", UnaryOp::sign},
    {"IsNaN", UnaryOp::is_nan},
    {"Not", UnaryOp::logical_not},
    {"Reciprocal", UnaryOp::recip},
    {"BitwiseNot", UnaryOp::bitwise_not},
};

constexpr ActivationRow kActivations[] = {
    {"Relu", ActivationOp::relu, "", 0, "", 0},
    {"Sigmoid", ActivationOp::sigmoid, "", 0, "", 0},
    {"Tanh", ActivationOp::tanh, "", 0, "", 0},
    {"LeakyRelu", ActivationOp::leaky_relu, "alpha", 0.01f, "", 0},
    {"Elu", ActivationOp::elu, "alpha", 1, "", 0},
    {"Selu", ActivationOp::selu, "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875},
    {"Softsign", ActivationOp::softsign, "", 0, "", 0},
    {"Softplus", ActivationOp::softplus, "", 1, "", 1},
    {"HardSigmoid", ActivationOp::hard_sigmoid, "alpha", 0.2f, "beta", 0.5},
    {"ThresholdedRelu", ActivationOp::thresholded_relu, "alpha", 1, "", 0},
    {"Celu", ActivationOp::celu, "alpha", 1, "", 0},
    {"HardSwish", ActivationOp::hard_swish, "", 0, "", 0},
    {"Mish", ActivationOp::mish, "", 0, "", 0},
    {"Shrink", ActivationOp::shrink, "lambd", 0.5, "bias", 0},
};

}  // namespace

const ActivationRow* find_activation(std::string_view name) {
  const auto* row = std::ranges::find(kActivations, name, &ActivationRow::name);
  return row == std::end(kActivations) ? nullptr : row;
}

void import_unary(NodeContext& c) {
  c.ignore({"consumed_inputs"});
  for (const UnaryRow& row : kUnary)
    if (row.name == c.op()) c.set_output(0, c.unary(row.op, c.require(0)));
}

void import_activation(NodeContext& c) {
  c.ignore({"consumed_inputs"});
  const ActivationRow& row = *find_activation(c.op());
  const double alpha = row.alpha_name.empty() ? row.alpha : c.real(row.alpha_name, row.alpha);
  const double beta = row.beta_name.empty() ? row.beta : c.real(row.beta_name, row.beta);
  if (row.op == ActivationOp::selu && c.version() < 6)
    return c.set_output(0, c.activation(row.op, c.require(0), c.real("alpha", 1.6732f), c.real("gamma", 1.0507f)));
  c.set_output(0, c.activation(row.op, c.require(0), alpha, beta));
}

void import_is_inf(NodeContext& c) {
  UnaryAttrs attributes;
  attributes.op = UnaryOp::is_inf;
  attributes.detect_negative = c.flag("detect_negative", true);
  attributes.detect_positive = c.flag("detect_positive", true);
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

void import_gelu(NodeContext& c) {
  const std::string mode = c.string("approximate", "none");
  if (mode != "none" && mode != "tanh") c.invalid("approximate is '{}', expected 'none' or 'tanh'", mode);
  c.set_output(0, c.activation(mode == "tanh" ? ActivationOp::gelu_tanh : ActivationOp::gelu_erf, c.require(0)));
}

// x * sigmoid(alpha * x); with alpha = 1 that is silu.
void import_swish(NodeContext& c) {
  const double alpha = c.real("alpha", 1);
  c.set_output(0, c.activation(alpha == 1 ? ActivationOp::silu : ActivationOp::swish, c.require(0), alpha));
}

void import_prelu(NodeContext& c) {
  c.ignore({"consumed_inputs"});
  ir::Value* x = c.require(0);
  ir::Value* slope = c.require(1);
  // Before version 7 a slope of one dimension belongs to the channels, axis 1.
  if (c.version() < 7 && slope->rank() == 1 && x->rank() > 2 && c.dim(slope, 0) != Expr(1)) {
    Ints axes;
    for (int i = 1; i < x->rank() - 1; ++i) axes.push_back(i);
    slope = c.unsqueeze(slope, axes);
  }
  c.set_output(0, c.add(PreluAttrs{}, {x, slope}));
}

// min(max(x, low), high). With constant bounds this is one activation.
void import_clip(NodeContext& c) {
  c.ignore({"consumed_inputs"});
  ir::Value* x = c.require(0);
  ir::Value *low = nullptr, *high = nullptr;
  if (c.version() < 11) {
    if (c.has_attribute("min")) low = c.scalar_like(c.real("min", 0), x);
    if (c.has_attribute("max")) high = c.scalar_like(c.real("max", 0), x);
  } else {
    low = c.input(1), high = c.input(2);
  }
  const std::optional<double> min = low ? c.constant_scalar(low) : -HUGE_VAL;
  const std::optional<double> max = high ? c.constant_scalar(high) : HUGE_VAL;
  if (is_floating(x->dtype()) && min && max && *min <= *max && (low || high))
    return c.set_output(0, c.activation(ActivationOp::clip, x, *min, *max));
  ir::Value* y = x;
  if (low) y = c.binary(ElementwiseOp::max, y, low);
  if (high) y = c.binary(ElementwiseOp::min, y, high);
  c.set_output(0, y == x ? c.identity(x) : y);
}

}  // namespace lathe::onnx
