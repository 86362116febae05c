// SPDX-License-Identifier: Apache-2.0
// Fusion of steps as they are: what is launched costs about as much as a short kernel takes.
#pragma once

#include "lowering/plan_code.h"

namespace lathe {

// Short steps that do not depend on each other, nor on what is between them, become one, of one launch; and so do steps
// of one block each, whether they depend on each other or not. Steps of plans with control flow stay as they are.
Result<> join_launches(BuiltPlan& built, const BuildOptions& options, PlanCode& code);

}  // namespace lathe
