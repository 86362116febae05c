// SPDX-License-Identifier: Apache-2.0
// Which expressions a kernel may compute as it reads them: those that this saves from memory without doing their work
// again and again.
#pragma once

#include <optional>

#include "lowering/region.h"

namespace lathe {

// Whether it costs less when all readers of the expression's result, kernels that can, compute it as they read
// it: each then reads the operands in its place, as often as it reads an element, and it is neither written nor read.
bool pays_to_recompute(const Region& region, CostModel& costs);

// The expression's result as input `input` of a kernel for `reader`; nullopt where kernels do not compute that.
std::optional<Expression> prologue_for(const Region& region, const ir::Node& reader, size_t input);

}  // namespace lathe
