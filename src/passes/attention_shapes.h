// SPDX-License-Identifier: Apache-2.0
// Shapes of attention: leading dimensions before rows of queries, keys or values.
#pragma once

#include "passes/reshape_target.h"
#include "passes/rewrite.h"

namespace lathe {

inline bool is_one(const Expr& dim) { return dim == Expr(1); }
inline const Expr& rows_of(const ir::Value* x) { return x->shape()[x->shape().size() - 2]; }

Shape leading(const Shape& shape);                   // all but the last two dimensions
Shape with_rows(Shape leading, const Shape& shape);  // those before the last two of `shape`
Shape folded(const Shape& whole);                    // two leading dimensions: the first, and the product of the others
ir::Value* length_of(Rewrite& r, ir::Value* x);      // how many rows, an integer without dimensions
// x with those leading dimensions; null where a size that it is repeated to is neither a number, nor what its own
// broadcasts to with a dimension of one of the others.
ir::Value* repeated_to(Rewrite& r, ir::Value* x, const Shape& lead, const std::vector<ir::Value*>& others);

}  // namespace lathe
