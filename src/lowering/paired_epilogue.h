// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/region.h"

namespace lathe {

// A product whose columns are cut into the even and the odd ones, with the nodes, all of which may join, that make one
// result of both: from each half to the one in which they meet. nullopt where it is no such product.
std::optional<Region> with_pairs(ir::Node& root, const NodeOrder& order, const MayJoin& may_join);

}  // namespace lathe
