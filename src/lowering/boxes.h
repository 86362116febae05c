// SPDX-License-Identifier: Apache-2.0
// Expressions that read concatenations where their parts lie: a roll (the end of a tensor joined with its beginning),
// say, in whatever order its elements are wanted.
//
// Which part an element is of depends on where it is. So the result is cut into boxes of the iteration space in each of
// which it is always the same part; each is a step that reads by strides, as all expressions do. A roll by 3 of rows
// that are then taken in windows of 7 has three boxes: the windows but for the last, and of that the first 4 rows and
// the other 3.
#pragma once

#include "lowering/region.h"

namespace lathe {

// The expression of `nodes`, those of a region that ends with `last`, which a concatenation may be itself, together
// with the concatenations and slices before it that nothing else reads. nullopt where there are none of which this
// saves a copy: those whose parts kernels write in place are left alone; and where there are so many boxes that their
// steps cost more than the copies.
std::optional<Region> region_in_boxes(ir::Node* last, const std::vector<ir::Node*>& nodes, const NodeOrder& order,
                                      CostModel& costs, const MayJoin& may_join);

}  // namespace lathe
