// SPDX-License-Identifier: Apache-2.0
// Launches whose blocks may wait for each other.
#pragma once

#include <cstdint>

namespace lathe {

// As Launch::cluster: all blocks of the launch run at the same time (a cooperative launch of CUDA). They are no
// cluster: they synchronise through global memory. A device that runs fewer blocks at once refuses the launch.
inline constexpr uint32_t kWholeGrid = UINT32_MAX;

}  // namespace lathe
