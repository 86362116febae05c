// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attributes.h"

namespace lathe {

// The constant shape operand with which reshape turns a tensor of shape `from` into one of shape `to`: numbers, 0 where
// a symbolic dim stays in place, one -1 at most. nullopt when that cannot say it.
std::optional<Ints> reshape_target(const Shape& from, const Shape& to);

}  // namespace lathe
