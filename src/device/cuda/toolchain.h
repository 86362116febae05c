// SPDX-License-Identifier: Apache-2.0
// Compiles device code in worker processes, because NVRTC may crash, hang or exhaust memory (decision 0013); where no
// processes can be started, in this one.
#pragma once

#include <memory>

#include "device/compiler_options.h"
#include "device/cuda/compile_source.h"

namespace lathe::cuda {

// Thread-safe. As many kernels are compiled at one time as there are workers; further callers wait.
class Toolchain {
 public:
  virtual ~Toolchain() = default;
  virtual const NvrtcInfo& nvrtc() const = 0;
  // An error that NVRTC reports is no failure but Compiled::result. Fails with kernel_compile_failed where the source
  // has ended a worker or was stopped at a limit: such a source is not to be tried again.
  virtual Result<Compiled> compile(const CompileRequest& request) = 0;
};

// Workers are started when they are needed, and end with the object. Where none can be started, this process compiles
// and one warning is logged. Fails where no usable NVRTC is found.
Result<std::unique_ptr<Toolchain>> open_toolchain(const CompilerOptions& options);

// Compiles in this process, one kernel at a time. `nvrtc` as CompilerOptions has it.
Result<std::unique_ptr<Toolchain>> open_in_process(const std::vector<std::string>& nvrtc);

// The path of lathe-compiler for CompilerOptions::program; "": compile in this process. Fails with invalid_state where
// none is given and none lies beside the library.
Result<std::string> compiler_program(const std::optional<std::string>& given);

}  // namespace lathe::cuda
