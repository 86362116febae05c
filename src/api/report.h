// SPDX-License-Identifier: Apache-2.0
// The border: errors become reports, exceptions stop here, the application's logger becomes a Log.
#pragma once

#include <atomic>
#include <memory>

#include "NvInferRuntime.h"
#include "api/exclusive.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "base/result.h"
#include "plugin/recorder_slot.h"

namespace lathe::api {

namespace nv = nvinfer1;

nv::ErrorCode code_for(ErrorCode code);

// Text of the calling thread's last reported error; "" when there was none.
const char* last_error() noexcept;
void set_last_error(const std::string& text) noexcept;

// Log lines go to an ILogger.
class LoggerLog final : public Log {
 public:
  explicit LoggerLog(nv::ILogger* logger) : logger_(logger) {}
  void write(Severity severity, std::string_view line) override;
  nv::ILogger* logger() const { return logger_; }

 private:
  nv::ILogger* logger_;
};

// Where an object reports: its own error recorder, else the nearest ancestor's, else the logger. Thread-safe.
class Reporter {
 public:
  explicit Reporter(nv::ILogger* logger) noexcept : log_(logger) {}  // allocates nothing: it reports failed allocations
  explicit Reporter(std::shared_ptr<const Reporter> parent) noexcept
      : log_(parent->logger()), parent_(std::move(parent)) {}
  void set_recorder(nv::IErrorRecorder* recorder) noexcept { recorder_.set(recorder); }
  nv::IErrorRecorder* recorder() const noexcept;  // the nearest, or null
  nv::ILogger* logger() const noexcept { return log_.logger(); }
  Log& log() const noexcept { return log_; }

  // Exactly one report, which the logger gets as a detail where there is a recorder. `where` is the function that the
  // application called.
  void report(const char* where, const Error& error) const noexcept;
  void report_allocation_failure(const char* where) const noexcept;
  void report_exception(const char* where, const char* what) const noexcept;

 private:
  plugin::RecorderSlot::Held hold_recorder() const noexcept;
  void deliver(nv::ErrorCode code, const char* text) const noexcept;

  mutable LoggerLog log_;
  std::shared_ptr<const Reporter> parent_;
  plugin::RecorderSlot recorder_;
};

// What a call on an object that one thread at a time may use begins with: where it reports, and its turn.
struct Entry {
  const Reporter& reporter;
  Exclusive& use;
  Exclusive::Call call = Exclusive::Call::changes;
};

// Runs the body of an entry point. On an error or exception: one report, and false.
bool succeeds(const Reporter& reporter, const char* where, FunctionRef<Result<>()> body) noexcept;
bool succeeds(const Entry& entry, const char* where, FunctionRef<Result<>()> body) noexcept;

// The same of a body that returns Result<T>: `fallback` where it fails. All that depends on T is here.
template <class At, class T, class Body>
T value_or(const At& at, const char* where, T fallback, Body& body) noexcept {
  succeeds(at, where, [&]() -> Result<> {
    Result<T> result = body();
    if (!result) return fail(std::move(result).error());
    fallback = *std::move(result);
    return {};
  });
  return fallback;
}

template <class T, class Body>
T guarded(const Reporter& reporter, const char* where, T fallback, Body&& body) noexcept {
  return value_or(reporter, where, std::move(fallback), body);
}

template <class T, class Body>
T guarded(const Entry& entry, const char* where, T fallback, Body&& body) noexcept {
  return value_or(entry, where, std::move(fallback), body);
}

// For functions that return nothing, or whether they succeeded: `body` returns Result<>.
template <class Body>
bool guarded(const Reporter& reporter, const char* where, Body&& body) noexcept {
  return succeeds(reporter, where, body);
}

template <class Body>
bool guarded(const Entry& entry, const char* where, Body&& body) noexcept {
  return succeeds(entry, where, body);
}

}  // namespace lathe::api
