// SPDX-License-Identifier: Apache-2.0
// The GPU architectures that we compile for, and the names of targets: "cuda-sm_90".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/cuda/device_properties.h"
#include "device/target.h"

namespace lathe::cuda {

struct Architecture {
  int number;             // 90
  std::string_view code;  // "sm_90a": the value of NVRTC's --gpu-architecture
  std::string_view family;
  Target::Limits limits;
  int least_multiprocessors;  // of its smallest device
  int multiprocessors;        // of the device that the cost model assumes where none is there, like what follows
  double clock_mhz;           // the highest
  double memory_rate;         // bytes in a microsecond
  double cache_bytes;
  Target::Products products;
};

Result<const Architecture*> find_architecture(int number);
Result<const Architecture*> parse_target(std::string_view target);
std::string target_name(const Architecture& architecture);
// Any device of the architecture, or that one.
Target describe(const Architecture& architecture);
Target describe(const Architecture& architecture, const DeviceProperties& properties);

}  // namespace lathe::cuda
