// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// What a plan says of weights that can be replaced. Ops, attributes and packings are checked where they are run.
Result<> validate_refit(const Plan& plan);

}  // namespace lathe::plan
