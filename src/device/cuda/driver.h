// SPDX-License-Identifier: Apache-2.0
// The CUDA driver: a table of its functions, filled when a GPU is first asked for. No other file calls the driver's
// library, so that one stand-in is enough to test everything above it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "device/cuda/cuda_types.h"

namespace lathe::cuda {

inline constexpr int kMinDriverVersion = 12000;  // as the driver counts: 1000 * major + 10 * minor

struct Driver {
#define LATHE_DRIVER_FUNCTION(name, symbol, need, parameters) CUresult(*name) parameters = nullptr;
#include "device/cuda/driver.def"
#undef LATHE_DRIVER_FUNCTION
  std::string path;  // of the library
  int version = 0;   // of CUDA, that the driver supports

  bool has_graphs() const { return cuGraphInstantiate && cuGraphExecUpdate && cuGraphLaunch && cuGraphExecDestroy; }
  bool has_cache_windows() const { return cuStreamSetAttribute && cuCtxSetLimit; }
  bool has_linker() const { return cuLinkCreate && cuLinkAddData && cuLinkComplete && cuLinkDestroy; }
  bool has_pools() const { return cuMemAllocAsync && cuMemFreeAsync; }
};

// Opens `path`, checks its version and functions, and initialises it.
Result<std::unique_ptr<const Driver>> open_driver(const std::string& path);

// The process's driver: libcuda.so.1, or what the environment variable LATHE_CUDA_DRIVER names. Opened at the first
// call that succeeds, never closed.
Result<const Driver*> driver();

// The same where something in this process has loaded its library, the application's use of CUDA for one; null =
// nothing has, or it does not start, which is found out once.
const Driver* driver_in_use();

std::string version_text(int version);  // "12.4"

// What a call has reported, in words: "CUDA_ERROR_OUT_OF_MEMORY (2): remedy".
Error driver_error(CUresult result, std::string_view doing);
// Whether the context is gone after this result.
bool is_lost(CUresult result);

}  // namespace lathe::cuda
