// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/compiler_worker.h"

#include <unistd.h>

#include <algorithm>

namespace lathe::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kIdleSeconds = 0.01;  // processor time that a process may use without doing anything: its watcher runs
constexpr double kPollSeconds = 1;     // between looks at a worker's processor time, if its limit is not shorter

}  // namespace

Result<std::unique_ptr<CompilerWorker>> CompilerWorker::start(const std::string& program,
                                                              const CompilerOptions& options) {
  LATHE_ASSIGN(std::unique_ptr<ChildProcess> process,
               ChildProcess::start(program, {"--worker", std::to_string(::getpid())}));
  auto made = std::unique_ptr<CompilerWorker>(new CompilerWorker(std::move(process), options));
  made->begin_task();
  const Result<worker::Greeting> greeting = made->connection_.receive<worker::Greeting>();
  if (!greeting)
    return fail(ErrorCode::invalid_state, "'{}' does not run: {} ({})", program, greeting.error().message,
                made->process_->stop());
  if (greeting->protocol != worker::kProtocol)
    return fail(ErrorCode::invalid_state,
                "'{}' is of another version of Lathe (its protocol is {}, this library's is {}): install the one that "
                "came with this library, or set LATHE_COMPILER to its path",
                program, greeting->protocol, worker::kProtocol);
  const Result<> sent = made->connection_.send(worker::Setup{options.memory, options.nvrtc});
  Result<worker::Ready> ready = sent ? made->connection_.receive<worker::Ready>() : fail(sent.error());
  if (!ready)
    return fail(ErrorCode::nvrtc_unsuitable, "{}", made->lost("opening NVRTC", std::move(ready).error()).message);
  if (ready->error != 0) return fail(Error{static_cast<ErrorCode>(ready->error), std::move(ready->message), {}});
  made->nvrtc_ = std::move(ready->nvrtc);
  return made;
}

CompilerWorker::CompilerWorker(std::unique_ptr<ChildProcess> process, const CompilerOptions& options)
    : process_(std::move(process)),
      connection_(process_->socket(), [this](short events) { return wait(events); }),
      seconds_(options.seconds),
      memory_(options.memory) {}

void CompilerWorker::begin_task() {
  begun_cpu_ = seen_cpu_ = process_->cpu_seconds();
  seen_ = Clock::now();
}

// The limits are on processor time, because on a busy machine a sound compilation may take minutes of wall time. A
// worker that uses more than `seconds_` of it is taken to loop; one that uses none for `seconds_` of wall time, to be
// blocked.
Result<> CompilerWorker::wait(short events) {
  const auto milliseconds = static_cast<int>(1000 * std::min(kPollSeconds, seconds_ / 4)) + 1;
  while (!worker::poll_socket(process_->socket(), events, milliseconds)) {
    const double cpu = process_->cpu_seconds();
    if (cpu > seen_cpu_ + kIdleSeconds) {
      seen_cpu_ = cpu;
      seen_ = Clock::now();
    }
    if (cpu - begun_cpu_ > seconds_) {
      stopped_ = true;
      return fail(ErrorCode::kernel_compile_failed, "the compiler took more than {} s of processor time", seconds_);
    }
    if (Clock::now() - seen_ > std::chrono::duration<double>(seconds_)) {
      stopped_ = true;
      return fail(ErrorCode::kernel_compile_failed, "the compiler did nothing for {} s", seconds_);
    }
  }
  return {};
}

Error CompilerWorker::lost(const char* task, Error error) {
  const std::string end = process_->stop();
  error.message = fmt::format("{}: {}", task, error.message);
  error.message +=
      stopped_ ? ", and was stopped" : fmt::format(": {}; its memory is limited to {} MiB", end, memory_ >> 20);
  return error;
}

Result<Compiled> CompilerWorker::compile(CompileRequest request) {
  begin_task();
  const Result<> sent = connection_.send(worker::Request{std::move(request)});
  Result<worker::Reply> reply = sent ? connection_.receive<worker::Reply>() : fail(sent.error());
  if (!reply) return fail(lost("compiling the kernel", std::move(reply).error()));
  return Compiled(std::move(*reply));
}

}  // namespace lathe::cuda
