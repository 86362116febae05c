// SPDX-License-Identifier: Apache-2.0
// Integers reach as far as they can: quantisation moves up and its inverse down through what only moves elements, until
// they meet and cancel.
#include <algorithm>
#include <numeric>

#include "ops/centred_bytes.h"
#include "ops/rules.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

Result<bool> drop_zero_point(Rewrite& r) {
  if (!r.input(2) || !all_equal(r.input(2), 0)) return false;
  return r.finish(r.add(r.node->attributes(), {r.input(0), r.input(1)}));
}

// Of constants: weights about 128, as quantisers of u8 write them, become what integer kernels multiply.
Result<bool> fold_zero_point(Rewrite& r) {
  const Tensor* levels = r.input(0)->constant();
  const Tensor* zero_point = r.input(2) ? r.input(2)->constant() : nullptr;
  if (!r.context.arithmetic.integer_products || !levels || !zero_point || !is_byte_integer(levels->dtype()) ||
      !r.node->attrs<DequantizeAttrs>().blocks.empty())
    return false;
  LATHE_ASSIGN(std::optional<Tensor> centred, centred_bytes(*levels, *zero_point));
  if (!centred) return false;
  return r.finish(r.add(r.node->attributes(), {r.constant(*std::move(centred)), r.input(1)}));
}

Result<bool> cancel(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::dequantize);
  if (!inner || !same_contents(r.input(1), inner->input(1)) || !same_contents(r.input(2), inner->input(2)) ||
      r.node->attrs<QuantizeAttrs>().blocks != inner->attrs<DequantizeAttrs>().blocks)
    return false;
  const DType integers = inner->input(0)->dtype();
  if (integers != r.output()->dtype() || !r.input(1)->constant()) return false;
  for (double scale : to_doubles(*r.input(1)->constant()))
    if (!keeps_levels(scale, integers, r.input(0)->dtype())) return false;
  return r.finish(inner->input(0));
}

// The scale of a constant's channels, transposed like it.
Result<ir::Value*> transposed_scale(Rewrite& r, const Dequantized& x) {
  ir::Value* const none = nullptr;
  if (x.zero_point || !x.integers->constant()) return none;
  Dims dims(static_cast<size_t>(x.integers->rank() - x.scale->rank()), 1);
  dims.insert(dims.end(), x.scale->dims().begin(), x.scale->dims().end());
  const Tensor scale = x.scale->reshaped(dims);
  LATHE_ASSIGN(std::vector<Tensor> results, run_op(r.node->attributes(), {&scale, 1}, 1));
  return r.constant(results[0]);
}

// Whether the node does to levels what it does to floats: 8-bit floats are moved, and not compared.
bool takes_levels(const ir::Node& node, DType levels, const Rewrite& r) {
  return are_multiplied(levels, r.context.arithmetic) && gives_elements(node) &&
         (is_byte_integer(levels) || node.has_trait(kStored | kView | kMovement));
}

Result<bool> sink_dequantize(Rewrite& r) {
  const std::optional<Dequantized> x = dequantized(r.input(0));
  if (!x) return false;
  const DType type = x->integers->dtype();
  const bool is_constant = r.context.arithmetic.integer_products && x->integers->constant() && !is_storage_only(type);
  if (!takes_levels(*r.node, type, r) && !(is_constant && gives_elements(*r.node))) return false;
  ir::Value *scale = x->node->input(1), *zero_point = nullptr;
  if (x->zero_point && x->scale->volume() == 1 && scalar_of(x->zero_point) && !r.node->is(OpKind::pad)) {
    scale = r.constant(x->scale->reshaped({}));
    zero_point = r.constant(x->zero_point->constant()->reshaped({}));
  } else if (!x->is_uniform()) {
    if (!r.node->is(OpKind::transpose)) return false;
    LATHE_ASSIGN(scale, transposed_scale(r, *x));
    if (!scale) return false;
  } else if (scale->rank() > 0) {
    scale = r.constant(x->scale->reshaped({}));
  }
  std::vector<ir::Value*> operands = r.node->inputs();
  operands[0] = x->integers;
  ir::Value* moved = r.add(r.node->attributes(), std::move(operands));
  r.absorb(x->node);
  std::vector<ir::Value*> levels = {moved, scale};
  if (zero_point) levels.push_back(zero_point);
  return r.finish(r.add(x->node->attributes(), std::move(levels)));
}

Result<bool> sink_dequantize_of_parts(Rewrite& r) {
  std::vector<ir::Value*> integers;
  std::optional<Dequantized> first;
  for (const ir::Value* input : r.node->inputs()) {
    const std::optional<Dequantized> x = dequantized(input);
    if (!x || !x->is_uniform() || !are_multiplied(x->integers->dtype(), r.context.arithmetic)) return false;
    if (!first) first = x;
    if (x->integers->dtype() != first->integers->dtype() || x->scale->at_double(0) != first->scale->at_double(0) ||
        x->scale->dtype() != first->scale->dtype())
      return false;
    integers.push_back(x->integers);
    r.absorb(x->node);
  }
  ir::Value* joined = r.add(r.node->attributes(), std::move(integers));
  ir::Value* scale = r.constant(first->scale->reshaped({}));
  return r.finish(r.add(first->node->attributes(), {joined, scale}));
}

// The scale and zero point that all elements share, as operands of rank 0; nothing when they differ.
std::vector<ir::Value*> uniform_operands(Rewrite& r) {
  std::vector<ir::Value*> operands;
  for (size_t i = 1; i < r.node->num_inputs(); ++i) {
    const Tensor* constant = r.input(i) ? r.input(i)->constant() : nullptr;
    if (!r.input(i)) continue;
    if (!constant || constant->volume() != 1 || (i == 1 && !(constant->at_double(0) > 0))) return {};
    operands.push_back(constant->rank() == 0 ? r.input(i) : r.constant(constant->reshaped({})));
  }
  return operands;
}

ir::Value* quantize_part(Rewrite& r, ir::Value* part, const std::vector<ir::Value*>& operands) {
  std::vector<ir::Value*> inputs = {part};
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  return r.add(r.node->attributes(), std::move(inputs));
}

// Padding moves with a zero point of 0 only. 8-bit floats are made where the elements already lie as they shall:
// kernels write them there, and do not move them.
Result<bool> raise_quantize(Rewrite& r) {
  const ir::Node* inner = r.input(0)->producer();
  const bool concat = inner && inner->is(OpKind::concat);
  if (!r.context.arithmetic.integer_products || !inner || (!concat && !gives_elements(*inner)) ||
      !r.input(0)->has_single_use() || !is_byte_integer(r.output()->dtype()) ||
      !r.node->attrs<QuantizeAttrs>().blocks.empty() || (inner->is(OpKind::pad) && r.input(2)))
    return false;
  const std::vector<ir::Value*> operands = uniform_operands(r);
  if (operands.empty()) return false;
  std::vector<ir::Value*> inputs = inner->inputs();
  for (size_t i = 0; i < (concat ? inputs.size() : 1); ++i) inputs[i] = quantize_part(r, inputs[i], operands);
  r.absorb(inner);
  return r.finish(r.add(inner->attributes(), std::move(inputs)));
}

// What is moved between an activation and what it activates, as pixels of transposed convolutions are, so that
// quantising can move up.
Result<bool> raise_activation(Rewrite& r) {
  const ir::Node* function = made_by(r.input(0), OpKind::activation);
  const ir::Node* move = function && r.input(0)->has_single_use() ? function->input(0)->producer() : nullptr;
  if (!r.context.arithmetic.integer_products || !move || !function->input(0)->has_single_use() ||
      !(move->is(OpKind::reshape) || move->is(OpKind::transpose) || move->is(OpKind::slice) ||
        move->is(OpKind::depth_to_space)) ||
      !is_byte_integer(r.output()->dtype()) || uniform_operands(r).empty())
    return false;
  std::vector<ir::Value*> moved = move->inputs(), inputs = r.node->inputs();
  moved[0] = r.add(function->attributes(), {move->input(0)});
  r.absorb(function);
  r.absorb(move);
  inputs[0] = r.add(move->attributes(), std::move(moved));
  return r.finish(r.add(r.node->attributes(), std::move(inputs)));
}

// Of whole images, which CPUs pool as levels.
Result<bool> pool_pixels(Rewrite& r) {
  const auto& attrs = r.node->attrs<ReduceAttrs>();
  const std::optional<Dequantized> x = dequantized(r.input(0));
  if (!r.context.arithmetic.weighted_products || attrs.op != ReduceOp::mean || !x ||
      !is_byte_integer(x->integers->dtype()) || !r.input(0)->has_single_use())
    return false;
  const int rank = r.input(0)->rank();
  PoolingAttrs pooling;
  pooling.op = PoolingOp::average;
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (const int64_t axis : attrs.axes) reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  for (int d = 0; d < rank; ++d) {
    if (reduced[static_cast<size_t>(d)] != (d >= 2)) return false;
    const std::optional<int64_t> size = r.input(0)->shape()[static_cast<size_t>(d)].as_constant();
    if (d < 2) continue;
    if (!size) return false;
    pooling.window.push_back(*size);
  }
  if (rank < 3 || rank > 5) return false;
  ir::Value* means = r.add(pooling, {r.input(0)});
  if (attrs.keepdims) return r.finish(means);
  Ints axes(static_cast<size_t>(rank) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return r.finish(r.squeeze(means, axes));
}

constexpr std::string_view kSink = "move(dequantize(q, s)) = dequantize(move(q), s)";

}  // namespace

Result<bool> propagate_quantization(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"quantize(x, s, 0) = quantize(x, s)", OpKind::quantize, drop_zero_point},
      {"dequantize(q, s, 0) = dequantize(q, s)", OpKind::dequantize, drop_zero_point},
      {"dequantize(c, s, z) = dequantize(c - z, s)", OpKind::dequantize, fold_zero_point},
      {"quantize(dequantize(q, s, z), s, z) = q", OpKind::quantize, cancel},
      {"quantize(move(x), s) = move(quantize(x, s))", OpKind::quantize, raise_quantize},
      {"quantize(f(move(x)), s) = quantize(move(f(x)), s)", OpKind::quantize, raise_activation},
      {kSink, OpKind::reshape, sink_dequantize},
      {kSink, OpKind::flatten, sink_dequantize},
      {kSink, OpKind::squeeze, sink_dequantize},
      {kSink, OpKind::unsqueeze, sink_dequantize},
      {kSink, OpKind::transpose, sink_dequantize},
      {kSink, OpKind::slice, sink_dequantize},
      {kSink, OpKind::expand, sink_dequantize},
      {kSink, OpKind::tile, sink_dequantize},
      {kSink, OpKind::gather, sink_dequantize},
      {kSink, OpKind::depth_to_space, sink_dequantize},
      {kSink, OpKind::space_to_depth, sink_dequantize},
      {kSink, OpKind::pooling, sink_dequantize},
      {kSink, OpKind::pad, sink_dequantize},
      {kSink, OpKind::resize, sink_dequantize},
      {"mean(dequantize(q, s)) over pixels = average(dequantize(q, s))", OpKind::reduce, pool_pixels},
      {"concat(dequantize(p, s), dequantize(q, s)) = dequantize(concat(p, q), s)", OpKind::concat,
       sink_dequantize_of_parts},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
