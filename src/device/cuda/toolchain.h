// SPDX-License-Identifier: Apache-2.0
// Where device code is compiled: by worker processes, for a compiler of 100 MB may crash or hang at any time, or, where
// no processes may be started, in this one.
#pragma once

#include <memory>
#include <optional>

#include "base/log.h"
#include "device/cuda/compile_source.h"

namespace lathe::cuda {

struct ToolchainOptions {
  // The path of lathe-compiler; "": compile in this process. Unset: the environment variable LATHE_COMPILER says it in
  // the same way, and else it lies beside the library.
  std::optional<std::string> program;
  std::vector<std::string> nvrtc;  // where NVRTC is looked for; empty: nvrtc_names()
  // What one kernel may take: of processor time, and of time in which it uses none.
  double seconds = 60;
  size_t memory = size_t{4} << 30;  // bytes that one worker may take
  size_t workers = 0;               // the most at one time; 0: as many as there are cores
  Log* log = nullptr;
};

// Thread-safe; as many kernels are compiled at one time as there are callers and workers.
class Toolchain {
 public:
  virtual ~Toolchain() = default;
  virtual const NvrtcInfo& nvrtc() const = 0;
  // What NVRTC says of a source is no failure. Fails with kernel_compile_failed where the source has ended a worker or
  // was stopped at a limit: it is not to be tried again.
  virtual Result<Compiled> compile(const CompileRequest& request) = 0;
};

// Workers are started when they are needed, and end with the object. Fails where there is no NVRTC that can be used.
Result<std::unique_ptr<Toolchain>> open_toolchain(const ToolchainOptions& options);

// In this process, one kernel at a time.
Result<std::unique_ptr<Toolchain>> open_in_process(const std::vector<std::string>& nvrtc);

// The path of lathe-compiler as the options say; "": none is wanted.
Result<std::string> compiler_program(const std::optional<std::string>& given);

}  // namespace lathe::cuda
