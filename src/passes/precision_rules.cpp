// SPDX-License-Identifier: Apache-2.0
#include "passes/precision_rules.h"

namespace lathe {

PrecisionRule precision_rule(const ir::Node& node) {
  if (node.has_trait(kNarrows)) return PrecisionRule::lower;
  return node.has_trait(kView | kUnchanged) ? PrecisionRule::follow : PrecisionRule::keep;
}

bool is_computed_with(const ir::Node& node, size_t input) { return !node.is(OpKind::resize) || input == 0; }

Result<> round_factors(ir::Graph& graph, ir::Node& node, DType to) {
  const auto set = [&](auto attrs) {
    attrs.factors = to;
    return graph.set_attributes(&node, attrs);
  };
  if (node.is(OpKind::matmul)) return set(node.attrs<MatmulAttrs>());
  return node.is(OpKind::attention) ? set(node.attrs<AttentionAttrs>()) : set(node.attrs<ExpertMatmulAttrs>());
}

Result<ir::Value*> add_named_cast(ir::Graph& graph, ir::Value* value, DType to, std::vector<std::string> origin,
                                  ir::Node* before) {
  CastAttrs attrs;
  attrs.to = to;
  return graph.add_value(attrs, {value}, {fmt::format("{}_{}", value->name(), name_of(to)), std::move(origin), {}},
                         before);
}

}  // namespace lathe
