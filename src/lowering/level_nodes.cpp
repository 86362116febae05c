// SPDX-License-Identifier: Apache-2.0
#include "lowering/level_nodes.h"

#include <algorithm>

#include "lowering/program_builder.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {

using ir::Node;
using ir::Value;

bool gives_levels(const Node& node) {
  return node.is(OpKind::layer_normalization) || node.is(OpKind::rms_normalization) || node.is(OpKind::softmax) ||
         sums_windows(node);
}

bool dequantizes_for_windows(const Node& node) {
  const bool is_alike = node.is(OpKind::dequantize) && node.attrs<DequantizeAttrs>().blocks.empty() &&
                        is_byte_integer(node.input(0)->dtype()) && node.output()->dtype() == DType::f32 &&
                        scalar_of(node.input(1)) && (!node.input(2) || scalar_of(node.input(2)));
  return is_alike && !node.input(0)->constant() && !node.output()->is_graph_output() &&
         !node.output()->uses().empty() && std::ranges::all_of(node.output()->uses(), [](const ir::Use& use) {
           return use.index == 0 && sums_windows(*use.node);
         });
}

std::optional<Region> window_levels(Node& dequantize, const NodeOrder& order) {
  Space space(order.symbols);
  const Shape index = space.add(dequantize.output()->shape());
  ProgramBuilder program(dequantize.input(0));
  if (!program.add(dequantize, index)) return std::nullopt;
  std::optional<Expression> values = program.finish(dequantize.output(), std::move(space));
  if (!values) return std::nullopt;
  Region region;
  region.nodes = {&dequantize};
  region.expression = *std::move(values);
  region.expression.operands.insert(region.expression.operands.begin(), dequantize.input(0));
  region.expression.reads.insert(region.expression.reads.begin(), Read{{index, {}}, {}});
  return region;
}

bool has_small_levels(const Node& node) {
  const Value *levels = node.is(OpKind::quantize) ? node.output() : node.input(0),
              *floats = node.is(OpKind::quantize) ? node.input(0) : node.output();
  const bool are_sums =
      levels->dtype() == DType::i32 && levels->producer() && levels->producer()->has_trait(kContraction);
  return floats->dtype() == DType::f32 && node.input(1)->dtype() == DType::f32 &&
         (is_byte_integer(levels->dtype()) || are_sums);
}

bool dequantizes_sums(const Node& node) {
  return node.is(OpKind::dequantize) && has_small_levels(node) && node.input(0)->dtype() == DType::i32 &&
         node.input(2) && node.input(2)->dtype() == DType::i32;
}

std::vector<Node*> zero_point_terms(const Node& dequantize, const MayJoin& is_free) {
  if (!dequantizes_sums(dequantize)) return {};
  const auto made_by = [&](const Value* value, ElementwiseOp op) -> Node* {
    Node* node = value->producer();
    const bool is_meant = node && node->is(OpKind::elementwise) && node->attrs<ElementwiseAttrs>().op == op &&
                          value->has_single_use() && is_free(*node);
    return is_meant ? node : nullptr;
  };
  Node* sum = made_by(dequantize.input(2), ElementwiseOp::add);
  Node* product = made_by(sum ? sum->input(0) : dequantize.input(2), ElementwiseOp::mul);
  std::vector<Node*> terms;
  for (Node* term : {product, sum})
    if (term) terms.push_back(term);
  return terms;
}

std::vector<Node*> dequantized_operand(const Node& node, const Value* result, const MayJoin& is_free) {
  const auto is_free_value = [&](const Value* value) {
    const Node* producer = value->producer();
    return producer && value->has_single_use() && value->shape() == result->shape() && is_free(*producer);
  };
  for (const Value* input : node.inputs()) {
    if (input == result || !is_free_value(input)) continue;
    Node* last = input->producer();
    if (last->is(OpKind::dequantize)) return {last};
    if (last->is(OpKind::cast) && is_free_value(last->input(0)) && last->input(0)->producer()->is(OpKind::dequantize))
      return {last->input(0)->producer(), last};
  }
  return {};
}

}  // namespace lathe
