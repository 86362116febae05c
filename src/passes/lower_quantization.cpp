// SPDX-License-Identifier: Apache-2.0
// What no integer kernel took: constants are dequantised here and now, and where integers do not pay, quantising and
// dequantising again is arithmetic on floats.
#include <algorithm>
#include <cmath>

#include "ops/quantization.h"
#include "passes/match.h"
#include "passes/quantization.h"
#include "passes/reshape_target.h"
#include "passes/stays_packed.h"

namespace lathe {
namespace {

Result<bool> fold_dequantized(Rewrite& r) {
  if (!r.context.arithmetic.integer_products || !r.input(0)->constant() || stays_packed(*r.node, r.context.arithmetic))
    return false;  // fold_constants did it otherwise
  std::vector<Tensor> inputs;
  for (const ir::Value* input : r.node->inputs()) {
    if (input && !input->constant()) return false;
    inputs.push_back(input ? *input->constant() : Tensor());
  }
  LATHE_ASSIGN(std::vector<Tensor> results, run_op(r.node->attributes(), inputs, 1));
  return r.finish(r.constant(results[0]));
}

// The nearest level to a bound, as arithmetic in f32 finds it.
double level_of(double bound, double scale) {
  return std::nearbyint(static_cast<float>(bound) / static_cast<float>(scale));
}

// What clips x before it is rounded to levels clips the levels as well, for rounding keeps the order: x without it.
ir::Value* unclipped(ir::Value* x, std::optional<double> scale, IntegerRange& range) {
  const ir::Node* clip = made_by(x, OpKind::activation);
  if (!clip || !x->has_single_use() || !scale || !(*scale > 0)) return x;
  const auto& attrs = clip->attrs<ActivationAttrs>();
  const bool relu = attrs.op == ActivationOp::relu;
  if (!relu && (attrs.op != ActivationOp::clip || !(attrs.alpha <= attrs.beta))) return x;
  const double low = relu ? 0 : level_of(attrs.alpha, *scale), high = relu ? HUGE_VAL : level_of(attrs.beta, *scale);
  if (low > range.high || high < range.low) return x;
  range = {std::max(range.low, low), std::min(range.high, high)};
  return clip->input(0);
}

// The product of integers of whose sums the value is made, element by element; null where there is none.
const ir::Node* product_before(const ir::Value* value) {
  constexpr int kMostNodes = 16;
  for (int i = 0; i < kMostNodes; ++i) {
    const ir::Node* node = value->producer();
    if (node && node->has_trait(kContraction) && node->output()->dtype() == DType::i32) return node;
    if (!node || !node->has_trait(kPointwise)) return nullptr;
    value = node->input(node->input(0)->constant() && node->num_inputs() > 1 ? 1 : 0);
  }
  return nullptr;
}

// Whether the value is added to what is computed of a later product. Kernels add it when they have summed that; until
// then it lies in memory, as levels with a quarter of the bytes.
bool waits_for_sum(const ir::Value* value, const ir::Graph& graph) {
  if (!value->has_single_use()) return false;
  const ir::Node* reader = value->uses()[0].node;
  if (!reader->is(OpKind::elementwise) || reader->attrs<ElementwiseAttrs>().op != ElementwiseOp::add) return false;
  const ir::Node* product = product_before(value);
  const ir::Node* other = product_before(reader->input(reader->input(0) == value ? 1 : 0));
  if (!product || !other) return false;
  const auto first = std::ranges::find_if(
      graph.nodes(), [&](const auto& node) { return node.get() == product || node.get() == other; });
  return product != other && first->get() == product;
}

// Whether kernels of CPUs read levels where floats are asked for: what they sum lies in memory before.
bool is_read_as_levels(const ir::Value* value) {
  return value->has_single_use() && sums_windows(*value->uses()[0].node);
}

// (clip(round(x / s), low - z, high - z)) * t for dequantize(quantize(x, s, z), t, z).
Result<bool> round_in_floats(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::quantize);
  // What only floats read; where integers are read by ops of any kind, they stay.
  if (!inner || !quantized_range(r.input(0)->dtype()) || !inner->attrs<QuantizeAttrs>().blocks.empty() ||
      !r.node->attrs<DequantizeAttrs>().blocks.empty())
    return false;
  const bool lowers = !r.context.arithmetic.integer_products || is_storage_only(r.input(0)->dtype()) ||
                      (r.context.arithmetic.weighted_products && r.input(0)->has_single_use() &&
                       !is_read_as_levels(r.output()) && !waits_for_sum(r.output(), r.graph()));
  if (!lowers || r.output()->dtype() != DType::f32 || inner->input(0)->dtype() != DType::f32 ||
      r.input(1)->dtype() != DType::f32)
    return false;
  if (!same_contents(r.input(2), inner->input(2))) return false;
  const std::optional<double> zero = r.input(2) ? scalar_of(r.input(2)) : 0;
  if (!zero || !same_shape(r.output(), inner->input(0))) return false;
  IntegerRange range = *quantized_range(r.input(0)->dtype());
  range = {range.low - *zero, range.high - *zero};
  ir::Value* x = unclipped(inner->input(0), scalar_of(inner->input(1)), range);
  r.absorb(inner);
  if (x != inner->input(0)) r.absorb(inner->input(0)->producer());
  ir::Value* levels = r.unary(UnaryOp::round, r.divide(x, inner->input(1)));
  return r.finish(r.mul(r.activation(ActivationOp::clip, levels, range.low, range.high), r.input(1)));
}

// round_e4m3(x / s) * t, where no product multiplies 8-bit floats.
Result<bool> round_to_float8(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::quantize);
  const DType type = r.input(0)->dtype();
  if (!inner || !is_factor_float8(type) || r.context.arithmetic.float8_products) return false;
  const auto& attrs = inner->attrs<QuantizeAttrs>();
  if (!attrs.saturate || !attrs.blocks.empty() || !r.node->attrs<DequantizeAttrs>().blocks.empty()) return false;
  const DType floats[] = {r.output()->dtype(), inner->input(0)->dtype(), inner->input(1)->dtype(), r.input(1)->dtype()};
  if (std::ranges::any_of(floats, [](DType each) { return each != DType::f32; })) return false;
  if (r.input(2) || inner->input(2) || !same_shape(r.output(), inner->input(0))) return false;
  r.absorb(inner);
  const UnaryOp round = type == DType::f8e4m3fn ? UnaryOp::round_e4m3 : UnaryOp::round_e5m2;
  return r.finish(r.mul(r.unary(round, r.divide(inner->input(0), inner->input(1))), r.input(1)));
}

ir::Value* reshape(Rewrite& r, ir::Value* x, const Shape& to) {
  if (x->shape() == to) return x;
  const std::optional<Ints> target = reshape_target(x->shape(), to);
  return target ? r.reshape(x, *target) : nullptr;
}

// x's dimensions with each that has several blocks cut in two, blocks and a block's elements, so that scales, which are
// `operands`, broadcast. Nothing where a last block is short, or may be.
struct SplitShapes {
  Shape x, operands;
};
std::optional<SplitShapes> split_at_blocks(const Shape& x, const Ints& blocks) {
  SplitShapes split;
  for (size_t d = 0; d < x.size(); ++d) {
    const std::optional<int64_t> extent = x[d].as_constant();
    if (blocks[d] <= 1 || (extent && blocks[d] >= *extent)) {
      split.x.push_back(x[d]);
      split.operands.push_back(blocks[d] == 1 ? x[d] : Expr(1));
      continue;
    }
    if (!extent || *extent % blocks[d] != 0) return std::nullopt;
    split.x.insert(split.x.end(), {*extent / blocks[d], blocks[d]});
    split.operands.insert(split.operands.end(), {*extent / blocks[d], 1});
  }
  return split;
}

// Of quantize and dequantize, so that kernels and other passes see scales that broadcast.
template <class A>
Result<bool> split_blocks(Rewrite& r) {
  A attrs = r.node->attrs<A>();
  if (attrs.blocks.empty() || stays_packed(*r.node, r.context.arithmetic)) return false;
  const std::optional<SplitShapes> split = split_at_blocks(r.input(0)->shape(), attrs.blocks);
  constexpr size_t kMostAxes = 8;
  if (!split || split->x.size() > kMostAxes) return false;
  attrs.blocks.clear();
  std::vector<ir::Value*> operands = r.node->inputs();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    operands[i] = reshape(r, operands[i], i == 0 ? split->x : split->operands);
    if (!operands[i]) return false;
  }
  ir::Value* result = reshape(r, r.add(attrs, std::move(operands)), r.output()->shape());
  return result ? r.finish(result) : false;
}

// The least power of two that is no less than |x|, as scales of MX formats are, by integer arithmetic on the bits of
// f32. Of powers that f32 has as normal numbers; beyond are the least and the largest of f8e8m0.
Result<bool> round_to_power_of_two(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::cast);
  if (!inner || r.input(0)->dtype() != DType::f8e8m0 || r.output()->dtype() != DType::f32 ||
      inner->input(0)->dtype() != DType::f32)
    return false;
  const auto& attrs = inner->attrs<CastAttrs>();
  if (!attrs.saturate || attrs.scale_rounding != ScaleRounding::up) return false;
  constexpr double kExponent = 0x7f800000, kMantissa = 0x7fffff;
  BitcastAttrs to_bits, to_number;
  to_bits.to = DType::i32;
  ir::Value *x = inner->input(0), *bits = r.add(to_bits, {x});
  bits = r.binary(ElementwiseOp::bitwise_and, r.binary(ElementwiseOp::add, bits, kMantissa), kExponent);
  ir::Value* power = r.binary(ElementwiseOp::min, r.add(to_number, {bits}), 0x1p127);
  ir::Value* is_least = r.binary(ElementwiseOp::less_equal, r.unary(UnaryOp::abs, x), 0x1p-127);
  power = r.select(is_least, r.scalar(0x1p-127, DType::f32), power);
  return r.finish(r.select(r.unary(UnaryOp::is_nan, x), x, power));
}

// Weights that stay packed are dequantised to the type of what they are multiplied by.
Result<bool> dequantize_to_type(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::dequantize);
  if (!inner || !r.input(0)->has_single_use() || !stays_packed(*inner, r.context.arithmetic)) return false;
  DequantizeAttrs attrs = inner->attrs<DequantizeAttrs>();
  attrs.to = r.output()->dtype();
  r.absorb(inner);
  return r.finish(r.add(attrs, inner->inputs()));
}

}  // namespace

Result<bool> lower_quantization(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"dequantize(c, s) = c * s", OpKind::dequantize, fold_dequantized},
      {"quantize(x, s by blocks) = join(quantize(split(x), s))", OpKind::quantize, split_blocks<QuantizeAttrs>},
      {"dequantize(q, s by blocks) = join(dequantize(split(q), s))", OpKind::dequantize, split_blocks<DequantizeAttrs>},
      {"cast(dequantize(c, s)) = dequantize{to}(c, s)", OpKind::cast, dequantize_to_type},
      {"cast(cast{to=f8e8m0}(x)) = power of two of x", OpKind::cast, round_to_power_of_two},
      {"dequantize(quantize(x, s), t) = clip(round(x / s)) * t", OpKind::dequantize, round_in_floats},
      {"dequantize(quantize(x, s), t) = round_e4m3(x / s) * t", OpKind::dequantize, round_to_float8},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
