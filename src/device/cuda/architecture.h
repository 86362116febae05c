// SPDX-License-Identifier: Apache-2.0
// The GPU architectures that we compile for, and the names of targets: "cuda-sm_90"; "cuda-sm_80+" is
// whatever runs code for sm_80.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/cuda/device_properties.h"
#include "device/target.h"

namespace lathe::cuda {

struct Architecture {
  int number;             // 90
  std::string_view code;  // "sm_90a": the value of NVRTC's --gpu-architecture; "compute_80" gives PTX
  std::string_view family;
  Target::Limits limits;
  int least_multiprocessors;  // of its smallest device
  int multiprocessors;        // of the device that the cost model assumes where none is there, like what follows
  double clock_mhz;           // the highest
  double memory_rate;         // bytes in a microsecond
  double cache_bytes;
  Target::Products products;

  bool is_tegra() const { return number == 87 || number == 110; }  // of boards with a memory for CPU and GPU
  bool is_open() const { return code.starts_with("compute_"); }    // newer ones run its code, too
};

Result<const Architecture*> find_architecture(int number);
// All of compute capability 8.0 and later: what every one of them can do, with 48 KiB of shared memory less what the
// driver keeps of it.
const Architecture& ampere_plus();
Result<const Architecture*> parse_target(std::string_view target);
std::string target_name(const Architecture& architecture);
// Whether a device of the architecture runs code for it.
bool runs_code_of(const Architecture& built, const Architecture& device);
// Any device of the architecture, or that one.
Target describe(const Architecture& architecture);
Target describe(const Architecture& architecture, const DeviceProperties& properties);
// The device, used for no more than ampere_plus() can do.
Target describe_as_ampere_plus(Target device);

}  // namespace lathe::cuda
