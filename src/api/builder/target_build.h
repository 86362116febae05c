// SPDX-License-Identifier: Apache-2.0
// What building for a target takes.
#pragma once

#include "build/build.h"
#include "device/cuda/toolchain.h"

namespace lathe::api {

// Whether `target` is the name of one, as in setTarget(); the device need not be there.
Result<> check_target_name(std::string_view target);

// Libraries whose kernels may be used beside our own, where the target has them.
struct LibrarySources {
  bool cublaslt = false;
  bool cudnn = false;
};

// Owns what it puts into the options: keep it until the plan is built.
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
