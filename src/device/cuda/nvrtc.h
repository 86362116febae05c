// SPDX-License-Identifier: Apache-2.0
// NVRTC, NVIDIA's compiler of device code, as a table of functions from the library that is loaded at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace lathe::cuda {

enum nvrtcResult : int {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  NVRTC_ERROR_INTERNAL_ERROR = 11,
};
using nvrtcProgram = struct _nvrtcProgram*;

struct NvrtcInfo {
  std::string path;  // of the library, absolute
  int32_t major = 0, minor = 0;
  std::vector<int32_t> architectures;  // that it compiles for, ascending: 75, 80...; one or more
  template <class Visit>
  void fields(Visit&& visit) {
    visit(path, major, minor, architectures);
  }
  bool operator==(const NvrtcInfo&) const = default;
};

struct Nvrtc : NvrtcInfo {
#define LATHE_NVRTC_FUNCTION(name, parameters) nvrtcResult(*name) parameters = nullptr;
#include "device/cuda/nvrtc.def"
#undef LATHE_NVRTC_FUNCTION
};

// Opens the first of `names` that can be loaded; one that this process has loaded already comes before all others.
Result<std::unique_ptr<const Nvrtc>> open_nvrtc(std::span<const std::string> names);

// The NVRTC of nvrtc_names(), loaded into this process by the first call that succeeds, and never unloaded.
// Thread-safe.
Result<const Nvrtc*> nvrtc();

// Where NVRTC is looked for, in order: one that this process has loaded already; then the path that the environment
// variable LATHE_NVRTC gives, or else the system's version 13 or 12, that of the driver's major version first.
std::vector<std::string> nvrtc_names();

}  // namespace lathe::cuda
