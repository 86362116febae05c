// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "device/cuda/context.h"

namespace lathe::cuda {

// PTX, with a zero at its end, as a cubin for the context's GPU, by the driver's linker; where the driver has none, the
// PTX itself, which it compiles whenever that is loaded.
Result<std::vector<std::byte>> link_assembly(std::span<const std::byte> assembly, PrimaryContext& context);

}  // namespace lathe::cuda
