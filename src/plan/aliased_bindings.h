// SPDX-License-Identifier: Apache-2.0
// Outputs that may have the address of an input: caches of which a step writes a part.
#pragma once

#include <optional>

#include "plan/plan.h"

namespace lathe::plan {

// The input binding of which output binding `output` is a copy that a later step changes in place; nothing reads that
// input after the copy, so that the copy may be left out where the application binds one address to both.
std::optional<uint32_t> aliased_input(const Plan& plan, uint32_t output);

}  // namespace lathe::plan
