// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// Whether elements of a and b are equal, or both NaN.
inline ir::Value* same_number(ir::GraphBuilder& c, ir::Value* a, ir::Value* b) {
  using Op = ElementwiseOp;
  ir::Value* same = c.binary(Op::equal, a, b);
  if (!is_floating(a->dtype())) return same;
  ir::Value* both_nan = c.binary(Op::logical_and, c.unary(UnaryOp::is_nan, a), c.unary(UnaryOp::is_nan, b));
  return c.binary(Op::logical_or, same, both_nan);
}

}  // namespace lathe
