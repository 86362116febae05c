// SPDX-License-Identifier: Apache-2.0
// What a GPU's code is made of where a module has no cubin for it: PTX, which the driver compiles, or source, which
// NVRTC does.
#pragma once

#include "device/cuda/context.h"
#include "device/device_code.h"
#include "device/launch.h"

namespace lathe::cuda {

// Of PTX that the target can run that for the newest architecture; null when there is none. PTX runs on its
// architecture and on newer ones, but PTX for one with a letter ("cuda-sm_90a") on that alone.
const CodeImage* find_assembly(const CodeModule& module, std::string_view target);

// That PTX, else source; fails with plan_target where there is neither.
Result<const CodeImage*> adaptable_image(const CodeModule& module, std::string_view target);

// A cubin of such an image for the GPU; of PTX, where the driver has no linker, the PTX itself. Source is compiled in a
// worker process and kept in the cache on disk, as while building.
Result<std::vector<std::byte>> compile_image(const CodeImage& image, PrimaryContext& context, std::string_view target);

// As Device::specialize().
struct OpenSource {
  const CodeImage& image;
  std::span<const SourceFile> headers;
};
Result<std::vector<std::byte>> specialize_source(const OpenSource& source, const Launch& launch,
                                                 std::span<const int64_t> numbers, std::string_view target);

// Lets go of the compilers that compile_image() has started.
void release_compilers();

}  // namespace lathe::cuda
