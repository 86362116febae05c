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
  std::string_view family;
  KernelLimits limits;
  int multiprocessors;  // of its smallest device
};

Result<const Architecture*> find_architecture(int number);
Result<const Architecture*> parse_target(std::string_view target);
std::string target_name(const Architecture& architecture);

}  // namespace lathe::cuda
