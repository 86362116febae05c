// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/builder/builder_config.h"
#include "plan/amend.h"
#include "tuning/backend.h"

namespace lathe::api {

// What IBuilderConfig::setHardwareCompatibilityLevel() asks of a backend.
Portability portability_of(const BuilderConfig& settings);

// Says of a plan on which GPUs it runs, and on which it was tuned. One warning where the level has no effect.
void note_hardware(const BuilderConfig& settings, const BackendBuild& backend, plan::Amendments& amendments, Log& log);

}  // namespace lathe::api
