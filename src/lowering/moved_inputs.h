// SPDX-License-Identifier: Apache-2.0
// Kernels that read their inputs in another order than they lie in: heads that are put together, say.
#pragma once

#include "lowering/region.h"

namespace lathe {

// The nodes that only move elements on their way to that input of the kernel's root, which alone reads them, as a
// region; nullopt where there are none, or an expression before them writes in that order anyway.
std::optional<Region> movement_before(const ir::Node& root, size_t input, const NodeOrder& order,
                                      const MayJoin& may_join);

}  // namespace lathe
