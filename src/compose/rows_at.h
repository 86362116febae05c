// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// The numbers, or the rows of numbers, at places[N, K] of x[N, L] or x[N, L, M].
inline ir::Value* rows_at(ir::GraphBuilder& c, ir::Value* x, ir::Value* places) {
  GatherElementsAttrs attributes;
  attributes.axis = 1;
  if (x->rank() == 3) places = c.expand(c.unsqueeze(places, {2}), c.concat({c.ints({1, 1}), c.shape_of(x, 2)}, 0));
  return c.add(attributes, {x, places});
}

}  // namespace lathe
