// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/builder/builder_config.h"
#include "base/log.h"
#include "plan/plan.h"

namespace lathe::api {

// Notes BuilderFlag::kWEIGHT_STREAMING in the plan; one warning where it has no effect.
void note_weight_streaming(const BuilderConfig& settings, plan::Plan& plan, Log& log);

}  // namespace lathe::api
