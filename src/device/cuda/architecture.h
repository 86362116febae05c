// SPDX-License-Identifier: Apache-2.0
// The GPU architectures that we compile for, and the names of targets: "cuda-sm_90".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/kernel_limits.h"

namespace lathe::cuda {

struct Architecture {
  int number;             // 90
  std::string_view code;  // "sm_90a": the value of NVRTC's --gpu-architecture
  bool exact;             // its code runs on no other architecture
  std::string_view family;
  KernelLimits limits;
};

Result<const Architecture*> find_architecture(int number);
Result<const Architecture*> parse_target(std::string_view target);
std::string target_name(const Architecture& architecture);

// Whether code for `built` runs on `device`.
bool runs_on(const Architecture& built, const Architecture& device);

}  // namespace lathe::cuda
