// SPDX-License-Identifier: Apache-2.0
// Which device a target names, and what building for it takes.
#pragma once

#include <span>

#include "build/build.h"
#include "device/cuda/toolchain.h"

namespace lathe::api {

// The device that runs a plan: what its header's target names. `cpu_threads` as in setCpuThreads().
Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads);

// Whether `target` is the name of one, as in setTarget(); the device need not be there.
Result<> check_target_name(std::string_view target);

// Lets go of the GPUs that are kept open; those that an engine uses stay open for as long.
void release_devices();

// Libraries whose kernels may be used beside our own, where the target has them.
struct LibrarySources {
  bool cublaslt = false;
  bool cudnn = false;
};

// What building for a target takes. Owns what it puts into the options: keep it until the plan is built.
class TargetBuild {
 public:
  // Fills in tactics, the device to measure on, the compiler, keys. `target` as in setTarget().
  Result<> prepare(std::string_view target, int cpu_threads, BuildOptions& options, LibrarySources sources = {},
                   const cuda::ToolchainOptions& toolchain = {});

 private:
  Result<> prepare_cpu(std::string_view target, int threads, BuildOptions& options);
  Result<> prepare_cuda(std::string_view target, std::shared_ptr<Device> device, BuildOptions& options,
                        LibrarySources sources, const cuda::ToolchainOptions& toolchain);

  std::unique_ptr<Compiler> compiler_;
  std::vector<std::unique_ptr<Tactic>> library_tactics_;
};

}  // namespace lathe::api
