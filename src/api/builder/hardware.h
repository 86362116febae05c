// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "api/builder/builder_config.h"
#include "tuning/backend.h"

namespace lathe::api {

// What IBuilderConfig::setHardwareCompatibilityLevel() asks of a backend.
Portability portability_of(const BuilderConfig& settings);

// Writes into the plan on which GPUs it runs, and on which it was tuned. One warning where the level has no effect.
Result<> apply_hardware(const BuilderConfig& settings, const BackendBuild& backend, std::vector<std::byte>& plan,
                        Log& log);

}  // namespace lathe::api
