// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shape/expr.h"

namespace lathe {

// The dimension that two broadcast to: the one that is not 1. It has no value where neither is 1 and they differ.
Expr broadcast_dim(const Expr& a, const Expr& b);

}  // namespace lathe
