// SPDX-License-Identifier: Apache-2.0
// The devices of this machine that plans name. Thread-safe.
#pragma once

#include <memory>
#include <span>

#include "device/device.h"
#include "plan/header.h"

namespace lathe::api {

// The first of the plan's targets that this machine runs; where it runs none, why. 0 for plans of one target.
Result<size_t> choose_variant(const plan::PlanHeader& header, int cpu_threads);

// The device that runs a plan: what its header's target names. `cpu_threads` as in setCpuThreads().
Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads);

// Lets go of the devices that are kept open; those that an engine uses stay open for as long.
void release_devices();

}  // namespace lathe::api
