// SPDX-License-Identifier: Apache-2.0
// Timing caches bring devices along: a build elsewhere goes by the numbers of the device that they were measured on.
#pragma once

#include "api/builder/builder_config.h"
#include "tuning/backend.h"
#include "tuning/timing_cache.h"

namespace lathe::api {

// Null = there is none, or BuilderFlag::kDISABLE_TIMING_CACHE is set.
lathe::TimingCache* timing_cache_of(const BuilderConfig& settings);

// A build whose device is not here is for the one of its target that the timing cache was measured on. One warning
// where that is several, none of which is taken.
void use_measured_device(const BuilderConfig& settings, BackendBuild& backend, Log& log);

// Notes the device of a build that has measured in the timing cache.
void note_measured_device(const BuilderConfig& settings, const BackendBuild& backend);

}  // namespace lathe::api
