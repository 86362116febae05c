// SPDX-License-Identifier: Apache-2.0
// GPUs as devices.
#pragma once

#include <memory>

#include "device/device.h"

namespace lathe::cuda {

// The GPU of that number (as the driver counts: CUDA_VISIBLE_DEVICES applies). The process has one object per GPU, as
// long as somebody holds it.
Result<std::shared_ptr<Device>> open_device(int ordinal);

}  // namespace lathe::cuda
