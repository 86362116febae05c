// SPDX-License-Identifier: Apache-2.0
// GPUs as devices.
#pragma once

#include <memory>

#include "device/cuda/libraries.h"
#include "device/device.h"

namespace lathe::cuda {

// The GPU of that number (as the driver counts: CUDA_VISIBLE_DEVICES applies). The process has one object per GPU, as
// long as somebody holds it.
Result<std::shared_ptr<Device>> open_device(int ordinal);

// The GPU of the context that is current to this thread (cudaSetDevice), or the first.
Result<std::shared_ptr<Device>> open_current_device();

// The libraries on a GPU that open_device() gave; as long as the device lives.
Libraries& libraries_of(Device& device);

}  // namespace lathe::cuda
