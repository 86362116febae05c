// SPDX-License-Identifier: Apache-2.0
// One process of lathe-compiler.
#pragma once

#include <chrono>

#include "base/child_process.h"
#include "device/cuda/toolchain.h"
#include "device/cuda/worker_protocol.h"

namespace lathe::cuda {

class CompilerWorker {
 public:
  // Starts one and lets it open NVRTC. Fails with invalid_state where it does not come to life, with nvrtc_unsuitable
  // where NVRTC ends it, else with what it says.
  static Result<std::unique_ptr<CompilerWorker>> start(const std::string& program, const ToolchainOptions& options);

  const NvrtcInfo& nvrtc() const { return nvrtc_; }
  // False in a fork of the process that started it, which has to leave it alone.
  bool is_ours() const { return process_->is_ours(); }
  // After a failure it is gone: what NVRTC says of a source is none.
  Result<Compiled> compile(CompileRequest request);

 private:
  CompilerWorker(std::unique_ptr<ChildProcess> process, const ToolchainOptions& options);
  Result<> wait(short events);
  void begin_task();
  Error lost(const char* task, Error error);

  std::unique_ptr<ChildProcess> process_;
  worker::Connection connection_;
  NvrtcInfo nvrtc_;
  double seconds_;  // the limit
  size_t memory_;
  // Processor time at the beginning of the task, and when it was last seen to have grown.
  double begun_cpu_ = 0, seen_cpu_ = 0;
  std::chrono::steady_clock::time_point seen_;
  bool stopped_ = false;  // at a limit
};

}  // namespace lathe::cuda
