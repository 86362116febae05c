// SPDX-License-Identifier: Apache-2.0
// The devices of this machine that plans name. GPUs stay open once they were used. Thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "device/device.h"

namespace lathe::api {

// The device that runs a plan: what its header's target names. `cpu_threads` as in setCpuThreads().
Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads);

// The number of the GPU that "cuda:1" names.
Result<int> gpu_ordinal(std::string_view target);
// That GPU; of "cuda" the current one.
Result<std::shared_ptr<Device>> open_gpu(std::string_view target);
// The current GPU if plans for `target` run on it; null when there is none, and the reason does not matter.
std::shared_ptr<Device> find_gpu_for(std::string_view target);

// Lets go of the GPUs that are kept open; those that an engine uses stay open for as long.
void release_devices();

}  // namespace lathe::api
