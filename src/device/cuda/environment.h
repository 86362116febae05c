// SPDX-License-Identifier: Apache-2.0
// What of CUDA this machine has, and what is wrong with it: for `lathe doctor`. No context is made on any device.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/device_properties.h"

namespace lathe::cuda {

struct EnvironmentCheck {
  std::string name;
  bool good = false;
  std::string detail;
  std::string remedy;  // empty when good
};

struct EnvironmentDevice {
  DeviceProperties properties;
  std::string target;  // "cuda-sm_90"; empty where the architecture is not supported
};

struct Environment {
  std::string driver_path, nvrtc_path;  // empty: none
  std::string driver_version, nvrtc_version;
  std::vector<EnvironmentDevice> devices;
  std::vector<EnvironmentCheck> checks;
};

Environment survey();

}  // namespace lathe::cuda
