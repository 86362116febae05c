// SPDX-License-Identifier: Apache-2.0
// Reductions that tests are about.
#pragma once

#include "ops/op.h"

namespace lathe::cuda {

inline ReduceAttrs reduce_attributes(ReduceOp op, Ints axes, bool keepdims = true) {
  ReduceAttrs attrs;
  attrs.op = op;
  attrs.axes = std::move(axes);
  attrs.keepdims = keepdims;
  return attrs;
}

}  // namespace lathe::cuda
