// SPDX-License-Identifier: Apache-2.0
#include "passes/precision_rules.h"

namespace lathe {

PrecisionRule precision_rule(OpKind kind) {
  switch (kind) {
    case OpKind::matmul:
    case OpKind::convolution:
    case OpKind::deconvolution:
    case OpKind::einsum:
    case OpKind::pooling:
    case OpKind::col2im:
    case OpKind::activation:
    case OpKind::unary:
    case OpKind::elementwise:
    case OpKind::prelu:
    case OpKind::softmax:
    case OpKind::batch_normalization:
    case OpKind::instance_normalization:
    case OpKind::layer_normalization:
    case OpKind::group_normalization:
    case OpKind::rms_normalization:
    case OpKind::reduce:
    case OpKind::resize:
    case OpKind::lrn:
    case OpKind::recurrence:
      return PrecisionRule::lower;
    case OpKind::select:
    case OpKind::concat:
    case OpKind::split:
    case OpKind::slice:
    case OpKind::reshape:
    case OpKind::squeeze:
    case OpKind::unsqueeze:
    case OpKind::flatten:
    case OpKind::identity:
    case OpKind::transpose:
    case OpKind::expand:
    case OpKind::pad:
    case OpKind::tile:
    case OpKind::gather:
    case OpKind::gather_elements:
    case OpKind::gather_nd:
    case OpKind::depth_to_space:
    case OpKind::space_to_depth:
      return PrecisionRule::follow;
    default:
      return PrecisionRule::keep;
  }
}

bool is_computed_with(const ir::Node& node, size_t input) { return !node.is(OpKind::resize) || input == 0; }

Result<ir::Value*> add_named_cast(ir::Graph& graph, ir::Value* value, DType to, std::vector<std::string> origin,
                                  ir::Node* before) {
  CastAttrs attrs;
  attrs.to = to;
  return graph.add_value(attrs, {value}, {fmt::format("{}_{}", value->name(), name_of(to)), std::move(origin), {}},
                         before);
}

}  // namespace lathe
