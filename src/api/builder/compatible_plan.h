// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "api/builder/builder_config.h"

namespace lathe::api {

// What BuilderFlag::kVERSION_COMPATIBLE makes of a plan: one that later versions read, with the runtime of this version
// in it unless kEXCLUDE_LEAN_RUNTIME is set. Warns of the latter alone.
Result<> apply_compatibility(const BuilderConfig& settings, std::vector<std::byte>& plan, Log& log);

}  // namespace lathe::api
