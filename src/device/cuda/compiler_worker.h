// SPDX-License-Identifier: Apache-2.0
// One running lathe-compiler, seen from the process that started it.
#pragma once

#include <chrono>

#include "base/child_process.h"
#include "device/cuda/toolchain.h"
#include "device/cuda/worker_protocol.h"

namespace lathe::cuda {

// For one thread at a time; the destructor ends the process.
class CompilerWorker {
 public:
  // Starts `program` and lets it open NVRTC. Fails with invalid_state where it cannot be started or is not this
  // version's lathe-compiler, with nvrtc_unsuitable where opening NVRTC ends it, and else with the worker's own error.
  static Result<std::unique_ptr<CompilerWorker>> start(const std::string& program, const CompilerOptions& options);

  const NvrtcInfo& nvrtc() const { return nvrtc_; }
  // False in a fork of the process that started it: the fork must not use it.
  bool is_ours() const { return process_->is_ours(); }
  // Fails when the process has ended or was stopped at a limit; the object cannot be used after that. An error that
  // NVRTC reports is no failure but Compiled::result.
  Result<Compiled> compile(CompileRequest request);

 private:
  CompilerWorker(std::unique_ptr<ChildProcess> process, const CompilerOptions& options);
  Result<> wait(short events);
  void begin_task();
  Error lost(const char* task, Error error);  // ends the process; `error` with the task and the cause

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
