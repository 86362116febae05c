// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/rewrite.h"

namespace lathe {

// The constant shape operand with which reshape turns a tensor of shape `from` into one of shape `to`: numbers, 0 where
// a symbolic dim stays in place, one -1 at most. nullopt when that cannot say it.
std::optional<Ints> reshape_target(const Shape& from, const Shape& to);

// x with those dims, of which x or an input of the network may have some; null where they are not known.
ir::Value* reshaped(Rewrite& r, ir::Value* x, const Shape& to);

}  // namespace lathe
