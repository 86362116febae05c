// SPDX-License-Identifier: Apache-2.0
// Whether a block's operands, and the params and results of its bodies, fit each other. docs/plan_format.md has the
// table.
#pragma once

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// Which tensors there are must have been checked before, of operands and of bodies.
Result<> check_block(const Plan& plan, const Step& step, const Block& block);

}  // namespace lathe::plan
