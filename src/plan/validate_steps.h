// SPDX-License-Identifier: Apache-2.0
// The part of validate() that is about steps and the order in which they write and read.
#pragma once

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// Indices of tensors' storages, bindings and expressions must have been checked before.
Result<> validate_steps(const Plan& plan);

}  // namespace lathe::plan
