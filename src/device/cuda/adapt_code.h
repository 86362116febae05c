// SPDX-License-Identifier: Apache-2.0
// What a GPU runs of a module without a cubin for it: PTX, which the driver translates, or source, which NVRTC
// compiles.
#pragma once

#include "device/device_code.h"

namespace lathe::cuda {

// Of PTX that the target can run that for the newest architecture; null when there is none. PTX runs on its
// architecture and on newer ones, but PTX for one with a letter ("cuda-sm_90a") on that alone.
const CodeImage* find_assembly(const CodeModule& module, std::string_view target);

// Source is compiled in a worker process and kept in the cache on disk, as while building.
Result<DeviceCode> adapt_code(const CodeModule& module, std::string_view target);

// Lets go of the compilers that adapt_code() has started.
void release_compilers();

}  // namespace lathe::cuda
