// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shape/expr.h"

namespace lathe {

// The dimension that two broadcast to: b where a is 1, a where b is 1 or equal to a. It has no value where they differ
// and neither is 1; whoever uses it states Relation::broadcast, so that this is noticed.
Expr broadcast_dim(const Expr& a, const Expr& b);

}  // namespace lathe
