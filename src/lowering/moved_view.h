// SPDX-License-Identifier: Apache-2.0
// Results that have the elements of another value in an order in which its memory may already hold them.
#pragma once

#include "lowering/region.h"

namespace lathe {

struct MovedView {
  ir::Value* base = nullptr;
  Space space;
  IndexMap from;  // of the base
  Shape to;       // index into the result

  // The result's strides where the base has these; nullopt when the axes of one dimension do not lie within each other.
  std::optional<Shape> strides(const Shape& of_base) const;
  // Whether a dimension of the result consists of several axes.
  bool joins_axes() const;
};

// Of a region that only moves the elements of one value.
std::optional<MovedView> moved_view(const Region& region, const std::vector<Range>& symbols);

}  // namespace lathe
