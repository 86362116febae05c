// SPDX-License-Identifier: Apache-2.0
// What no integer kernel took: constants are dequantised here and now, and where integers do not pay, quantising and
// dequantising again is arithmetic on floats.
#include "ops/quantization.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

Result<bool> fold_dequantized(Rewrite& r) {
  if (!r.context.integer_products || !r.input(0)->constant()) return false;  // fold_constants did it otherwise
  std::vector<Tensor> inputs;
  for (const ir::Value* input : r.node->inputs()) {
    if (input && !input->constant()) return false;
    inputs.push_back(input ? *input->constant() : Tensor());
  }
  LATHE_ASSIGN(std::vector<Tensor> results, run_op(r.node->attributes(), inputs, 1));
  LATHE_ASSIGN(ir::Value * result, r.constant(results[0]));
  return r.finish(result);
}

// (clip(round(x / s), low - z, high - z)) * t for dequantize(quantize(x, s, z), t, z).
Result<bool> round_in_floats(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::quantize);
  if (r.context.integer_products || !inner || r.output()->dtype() != DType::f32 ||
      inner->input(0)->dtype() != DType::f32 || r.input(1)->dtype() != DType::f32)
    return false;
  if (!same_contents(r.input(2), inner->input(2))) return false;
  const std::optional<double> zero = r.input(2) ? scalar_of(r.input(2)) : 0;
  if (!zero || !same_shape(r.output(), inner->input(0))) return false;
  const IntegerRange range = *quantized_range(r.input(0)->dtype());
  r.absorb(inner);
  LATHE_ASSIGN(ir::Value * result, r.elementwise(ElementwiseOp::div, inner->input(0), inner->input(1)));
  LATHE_ASSIGN(result, r.unary(UnaryOp::round, result));
  LATHE_ASSIGN(result, r.activation(ActivationOp::clip, result, range.low - *zero, range.high - *zero));
  LATHE_ASSIGN(result, r.elementwise(ElementwiseOp::mul, result, r.input(1)));
  return r.finish(result);
}

constexpr Rule kRules[] = {
    {"dequantize(c, s) = c * s", OpKind::dequantize, fold_dequantized},
    {"dequantize(quantize(x, s), t) = clip(round(x / s)) * t", OpKind::dequantize, round_in_floats},
};

}  // namespace

Result<bool> lower_quantization(ir::Graph& graph, PassContext& context) { return apply_rules(graph, context, kRules); }

}  // namespace lathe
