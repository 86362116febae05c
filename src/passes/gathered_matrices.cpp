// SPDX-License-Identifier: Apache-2.0
#include "passes/gathered_matrices.h"

namespace lathe {

bool takes_matrices(const ir::Node& node) {
  if (node.is(OpKind::gather)) {
    const int64_t axis = node.attrs<GatherAttrs>().axis;
    return node.input(0)->rank() == 3 && (axis == 0 || axis == -3);
  }
  return node.is(OpKind::gather_nd) && node.input(0)->rank() == 3 && node.attrs<GatherNdAttrs>().batch_dims == 0 &&
         node.input(1)->rank() > 0 && node.input(1)->shape().back() == Expr(1);
}

std::optional<RowByMatrices> row_by_matrices(const ir::Node& matmul, size_t side) {
  const auto& attrs = matmul.attrs<MatmulAttrs>();
  const ir::Value* x = matmul.input(1 - side);
  const bool is_right = side == 1, is_moved = is_right ? attrs.transpose_a : attrs.transpose_b;
  const RowByMatrices product{is_right ? attrs.transpose_b : !attrs.transpose_a, is_right != is_moved ? -2 : -1};
  if (x->rank() < 2 || x->shape()[static_cast<size_t>(x->rank() + product.single)] != Expr(1)) return std::nullopt;
  return product;
}

}  // namespace lathe
