// SPDX-License-Identifier: Apache-2.0
// Compiles device code in worker processes, because NVRTC may crash, hang or exhaust memory (decision 0013); where no
// processes can be started, in this one.
#pragma once

#include <memory>
#include <optional>

#include "base/log.h"
#include "device/cuda/compile_source.h"

namespace lathe::cuda {

struct ToolchainOptions {
  // The path of lathe-compiler; "": compile in this process. Unset: the environment variable LATHE_COMPILER has the
  // path or is empty likewise; where it is not set either, the program is looked for beside the library.
  std::optional<std::string> program;
  std::vector<std::string> nvrtc;  // where NVRTC is looked for; empty: nvrtc_names()
  // The limit of one kernel, both on processor time and on wall time in which the worker uses no processor time.
  double seconds = 60;
  size_t memory = size_t{4} << 30;  // bytes, the limit of each worker's data (RLIMIT_DATA)
  size_t workers = 0;               // the most at one time; 0: as many as there are cores
  bool keeps_code = true;           // NvrtcCompiler reads and writes its cache on disk
  Log* log = nullptr;               // gets the warning that this process compiles; not owned, outlives the toolchain
};

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
Result<std::unique_ptr<Toolchain>> open_toolchain(const ToolchainOptions& options);

// Compiles in this process, one kernel at a time. `nvrtc` as ToolchainOptions has it.
Result<std::unique_ptr<Toolchain>> open_in_process(const std::vector<std::string>& nvrtc);

// The path of lathe-compiler for ToolchainOptions::program; "": compile in this process. Fails with invalid_state where
// none is given and none lies beside the library.
Result<std::string> compiler_program(const std::optional<std::string>& given);

}  // namespace lathe::cuda
