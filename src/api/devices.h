// SPDX-License-Identifier: Apache-2.0
// Which device a target names, and what building for it takes.
#pragma once

#include <span>

#include "build/build.h"

namespace lathe::api {

// The device that runs a plan: what its header's target names. `cpu_threads` as in setCpuThreads().
Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads);

// Fills in what depends on the target: tactics, device to measure on, keys. "" is this machine's default.
Result<> target_build(std::string_view target, int cpu_threads, BuildOptions& options);

}  // namespace lathe::api
