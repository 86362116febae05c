// SPDX-License-Identifier: Apache-2.0
// What a GPU is, as the driver tells without a context.
#pragma once

#include <array>
#include <string>

#include "device/cuda/driver.h"

namespace lathe::cuda {

struct DeviceProperties {
  int ordinal = 0;
  CUdevice device = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  size_t memory_bytes = 0;
  int multiprocessors = 0;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0, l2_bytes = 0;
  int persisting_l2_bytes = 0;  // of the L2, that may be set aside; 0 before compute capability 8.0
  int max_threads = 0;          // of a block
  int max_shared_bytes = 0;     // of a block
  int core_shared_bytes = 0;    // of a multiprocessor
  int texture_alignment = 0;
  std::array<int, 3> max_grid{};
  bool memory_pools = false;
  bool clusters = false;
  bool is_integrated = false;  // its memory is the host's

  int architecture() const { return 10 * major + minor; }  // 90
};

Result<int> count_devices(const Driver& driver);
Result<DeviceProperties> read_properties(const Driver& driver, int ordinal);

}  // namespace lathe::cuda
