// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shape/expr.h"

namespace lathe {

// The dimension that two broadcast to: b where a is 1, a where b is 1 or equal to a. It has no value where they differ
// and neither is 1; whoever uses it states Relation::broadcast, so that this is noticed.
Expr broadcast_dim(const Expr& a, const Expr& b);

// Whether `dim` is one of those that broadcast to `to`, as far as the expression tells: it expands to it then.
bool is_broadcast_of(const Expr& to, const Expr& dim);

// The stride at which a dimension is read that broadcasts to `to`: 0 where it is 1. If only running tells that,
// stride * min(dim - 1, 1), which means nothing for an empty dimension, of which nothing is read.
Expr broadcast_stride(const Expr& dim, const Expr& to, const Expr& stride);

}  // namespace lathe
