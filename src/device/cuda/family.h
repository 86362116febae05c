// SPDX-License-Identifier: Apache-2.0
// GPUs by name. Those that were used stay open. Thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "device/device.h"

namespace lathe {
class DeviceFamily;
}

namespace lathe::cuda {

const DeviceFamily& family();

// "cuda" is the current GPU, "cuda:1" that one.
Result<std::shared_ptr<Device>> open_named(std::string_view name);

}  // namespace lathe::cuda
