// SPDX-License-Identifier: Apache-2.0
// The last of a plan, once all of its steps are there.
#pragma once

#include "lowering/plan_code.h"

namespace lathe {

// Drops steps and symbols that nothing reads, joins launches, gives steps of open sizes a form for each range of sizes,
// finds what runs on auxiliary streams, when each buffer is in use and which inputs are shape tensors.
Result<> finish_plan(BuiltPlan& built, const BuildOptions& options, PlanCode& code);

}  // namespace lathe
