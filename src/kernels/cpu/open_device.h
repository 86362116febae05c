// SPDX-License-Identifier: Apache-2.0
// The CPU device with all kernels of this library.
#pragma once

#include "device/cpu/cpu_device.h"

namespace lathe::cpu {

// One of this library's kernels; fails where it has none of that name.
Result<std::unique_ptr<lathe::Kernel>> make_kernel(const StepRecord& record);
// A device with threads of its own.
Result<std::shared_ptr<Device>> open_device(const ThreadPoolOptions& options);
// The one that everybody asking for as many threads shares; 0 = all that this process may use.
Result<std::shared_ptr<Device>> shared_device(int threads);

}  // namespace lathe::cpu
