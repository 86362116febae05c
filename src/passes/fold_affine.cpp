// SPDX-License-Identifier: Apache-2.0
// Per-channel factors and addends after a linear op go into its weights and bias.
#include "passes/linear.h"
#include "passes/match.h"

namespace lathe {
namespace {

Result<bool> fold(Rewrite& r) {
  const ElementwiseOp op = r.node->attrs<ElementwiseAttrs>().op;
  const bool product = op == ElementwiseOp::mul;
  if (!product && op != ElementwiseOp::add) return false;
  if (product && !r.context.fast_math) return false;
  const std::optional<Linear> linear = linear_of(r.input(0));
  if (!linear || !r.input(1)->content() || !same_shape(r.input(0), r.output())) return false;
  if (!product && linear->node->is(OpKind::matmul)) return false;  // it has no bias of its own
  if (is_derived(*linear) || is_derived(r.input(1))) {
    const std::optional<Known> values = known_along_axis(r.input(1), r.output(), linear->axis);
    ir::Value* const result =
        values ? add_derived(r, *linear, product ? *values : Known(), product ? Known() : *values) : nullptr;
    return result ? r.finish(result) : false;
  }
  const std::optional<std::vector<double>> values = along_axis(r.input(1), r.output(), linear->axis);
  if (!values) return false;
  const std::vector<double> neutral(values->size(), product ? 0 : 1);
  return r.finish(product ? add_scaled(r, *linear, *values, neutral) : add_scaled(r, *linear, neutral, *values));
}

}  // namespace

Result<bool> fold_affine(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"conv(x, w, b) * s = conv(x, w * s, b * s); conv(x, w, b) + t = conv(x, w, b + t); matmul(x, w) * s = matmul(x, "
       "w "
       "* s)",
       OpKind::elementwise, fold},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
