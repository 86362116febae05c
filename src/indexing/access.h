// SPDX-License-Identifier: Apache-2.0
// What becomes of an indexing map where the tensor lies in memory: strides along the axes of the space.
#pragma once

#include "indexing/index_map.h"

namespace lathe {

// The element at a point lies `offset` and `strides[i]` times each axis from the tensor's first element, where the
// axes are within the bounds. Bounds may be empty.
struct Bound {
  size_t axis = 0;
  Expr begin, end;  // of the axis
};
struct Access {
  Expr offset;
  Shape strides;              // along the axes of the space, in its order
  std::vector<Bound> bounds;  // at most one of each axis
};

// Of a tensor whose dimensions have these strides; nullopt where the map is not linear in the axes, or where more than
// one axis decides about a condition of its domain.
std::optional<Access> access_of(const IndexMap& map, const Shape& strides, const Space& space);

// Where to cut an axis of the space so that, in both parts, more is known of whether the interval holds; nullopt where
// it is known everywhere, or no such place is.
struct SplitPoint {
  size_t axis = 0;  // by its place in the order
  Expr at;          // the first index of the second part
};
std::optional<SplitPoint> cut_of(const Interval& interval, const Space& space);

// The axes of the space, by their place in its order, that an index moves along: the one with the longest steps first.
// Empty also where the index is not linear, so ask it of linear ones only.
std::vector<size_t> axes_in(const Expr& index, const Space& space);

}  // namespace lathe
