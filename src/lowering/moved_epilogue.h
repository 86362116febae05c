// SPDX-License-Identifier: Apache-2.0
// Epilogues that write a kernel's result in another order: heads that are split off, say.
#pragma once

#include "lowering/expression_builder.h"

namespace lathe {

// The dimension of an op's result in which its kernels compute neighbours: wherever the other dimensions go, elements
// along this one are to stay side by side.
size_t contiguous_dim(const ir::Node& root);
// The kernel, whose program is given, with the nodes behind it that reorder its result, and the pointwise ones among
// them and behind; nullopt where nothing does. `space` is that of the root's result, over which the program reads.
std::optional<Region> with_movement(const Region& kernel, const Space& space, ProgramBuilder program,
                                    const MayJoin& may_join);

}  // namespace lathe
