// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/builder/builder_config.h"
#include "plan/amend.h"

namespace lathe::api {

// What BuilderFlag::kVERSION_COMPATIBLE makes of a plan: one that later versions read.
void note_compatibility(const BuilderConfig& settings, plan::Amendments& amendments);
// Whether a plan gets libraries: a variant has none, for the plan of all variants gets them.
enum class PlanLibraries : uint8_t { left_out, added };
// And what it puts into it: libraries of plugins, and the runtime of this version unless kEXCLUDE_LEAN_RUNTIME is set.
// Warns of what has no effect without the flag.
Result<> add_libraries(const BuilderConfig& settings, plan::Amendments& amendments, Log& log);

}  // namespace lathe::api
