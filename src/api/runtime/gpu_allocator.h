// SPDX-License-Identifier: Apache-2.0
// Memory of devices from allocators of the application's.
#pragma once

#include <memory>

#include "NvInferRuntime.h"
#include "api/report.h"
#include "device/device.h"

namespace lathe::api {

// The device with all of its memory from `allocator`, which outlives that; itself where there is none, or where memory
// is the host's, for which no such allocator is.
std::shared_ptr<Device> with_allocator(std::shared_ptr<Device> device, nv::IGpuAllocator* allocator,
                                       std::shared_ptr<const Reporter> reporter);

}  // namespace lathe::api
