// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/region.h"

namespace lathe {

// The axes of a space along which keys or values [batch, heads, keys, size] are read in blocks; a dimension of one
// element has none, and neither have blocks of one key or single blocks.
struct PageAxes {
  std::optional<size_t> batch, heads, blocks, keys, size;
};
// Of a pool and its table; nothing where memory cannot be read so.
std::optional<PageAxes> page_axes(const Expression& read);

// The gather of a pool's blocks that a table names, and what moves their keys or values, or dequantises them, on their
// way to that input of an attention, which alone reads them: Expression::paged_dim. Nothing where there is no such
// gather, and where so many queries read each key that a copy is quicker.
std::optional<Region> pages_before(const ir::Node& root, size_t input, const NodeOrder& order, const MayJoin& may_join,
                                   const CostModel& costs);
// The same of levels of 8 bits that no table names blocks of: what dequantises a cache, and moves it.
std::optional<Region> levels_before(const ir::Node& root, size_t input, const NodeOrder& order, const MayJoin& may_join,
                                    const CostModel& costs);

}  // namespace lathe
