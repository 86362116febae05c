// SPDX-License-Identifier: Apache-2.0
#include "api/report.h"

#include <exception>
#include <new>

namespace lathe::api {
namespace {

thread_local std::string t_last_error;

nv::ILogger::Severity severity_for(Severity severity) { return static_cast<nv::ILogger::Severity>(severity); }

}  // namespace

static_assert(static_cast<int>(nv::ILogger::Severity::kINTERNAL_ERROR) == static_cast<int>(Severity::internal_error));
static_assert(static_cast<int>(nv::ILogger::Severity::kVERBOSE) == static_cast<int>(Severity::verbose));

nv::ErrorCode code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::out_of_memory:
      return nv::ErrorCode::kFAILED_ALLOCATION;
    case ErrorCode::internal:
    case ErrorCode::kernel_compile_failed:
      return nv::ErrorCode::kINTERNAL_ERROR;
    case ErrorCode::config_invalid:
    case ErrorCode::profile_invalid:
      return nv::ErrorCode::kINVALID_CONFIG;
    case ErrorCode::invalid_state:
    case ErrorCode::cancelled:
    case ErrorCode::stream_captured:
    case ErrorCode::memory_too_small:
      return nv::ErrorCode::kINVALID_STATE;
    case ErrorCode::execution_failed:
    case ErrorCode::device_lost:
    case ErrorCode::device_fault:
    case ErrorCode::device_call_failed:
    case ErrorCode::launch_refused:
    case ErrorCode::library_call_failed:
      return nv::ErrorCode::kFAILED_EXECUTION;
    case ErrorCode::plan_malformed:
    case ErrorCode::plan_version:
    case ErrorCode::plan_target:
    case ErrorCode::plan_digest:
    case ErrorCode::plan_signature:
    case ErrorCode::plan_host_code:
    case ErrorCode::library_refused:
    case ErrorCode::cuda_driver_missing:
    case ErrorCode::cuda_driver_too_old:
    case ErrorCode::cuda_symbol_missing:
    case ErrorCode::cuda_unavailable:
    case ErrorCode::cuda_no_device:
    case ErrorCode::device_code_refused:
    case ErrorCode::nvrtc_missing:
    case ErrorCode::nvrtc_unsuitable:
    case ErrorCode::library_missing:
    case ErrorCode::library_unsuitable:
      return nv::ErrorCode::kFAILED_INITIALIZATION;
    default:
      return kind_of(code) == ErrorKind::unsupported ? nv::ErrorCode::kUNSUPPORTED_STATE
                                                     : nv::ErrorCode::kINVALID_ARGUMENT;
  }
}

const char* last_error() noexcept { return t_last_error.c_str(); }

void set_last_error(const std::string& text) noexcept {
  try {
    t_last_error = text;
  } catch (...) {  // keeping the old text is all that is left
  }
}

void LoggerLog::write(Severity severity, std::string_view line) {
  if (logger_) logger_->log(severity_for(severity), std::string(line).c_str());
}

nv::IErrorRecorder* Reporter::recorder() const noexcept {
  if (nv::IErrorRecorder* own = recorder_.get()) return own;
  return parent_ ? parent_->recorder() : nullptr;
}

// The nearest, kept alive for a report.
plugin::RecorderSlot::Held Reporter::hold_recorder() const noexcept {
  plugin::RecorderSlot::Held own = recorder_.hold();
  return own || !parent_ ? std::move(own) : parent_->hold_recorder();
}

void Reporter::report(const char* where, const Error& error) const noexcept {
  try {
    const std::string text = with_context(error, where).to_string();
    set_last_error(text);
    const nv::ErrorCode code = code_for(error.code);
    if (recorder()) return deliver(code, text.c_str());
    deliver(code, fmt::format("Error Code {}: {}", static_cast<int>(code), text).c_str());
  } catch (...) {
    report_allocation_failure(where);
  }
}

void Reporter::report_allocation_failure(const char* where) const noexcept {
  deliver(nv::ErrorCode::kFAILED_ALLOCATION, "LATHE-9003 out_of_memory: memory allocation failed");
}

void Reporter::report_exception(const char* where, const char* what) const noexcept {
  try {
    report(where, Error{ErrorCode::internal, std::string("unexpected exception: ") + what, {}});
  } catch (...) {
    report_allocation_failure(where);
  }
}

bool succeeds(const Reporter& reporter, const char* where, FunctionRef<Result<>()> body) noexcept {
  try {
    const Result<> result = body();
    if (result) return true;
    reporter.report(where, result.error());
  } catch (const std::bad_alloc&) {
    reporter.report_allocation_failure(where);
  } catch (const std::exception& exception) {
    reporter.report_exception(where, exception.what());
  } catch (...) {
    reporter.report_exception(where, "unknown exception");
  }
  return false;
}

bool succeeds(const Entry& entry, const char* where, FunctionRef<Result<>()> body) noexcept {
  return succeeds(entry.reporter, where, [&]() -> Result<> {
    const Exclusive::Turn turn = entry.use.begin(entry.call);
    if (!turn) return turn.refusal();
    return body();
  });
}

void Reporter::deliver(nv::ErrorCode code, const char* text) const noexcept {
  using Severity = nv::ILogger::Severity;
  Severity severity = code == nv::ErrorCode::kINTERNAL_ERROR ? Severity::kINTERNAL_ERROR : Severity::kERROR;
  if (const plugin::RecorderSlot::Held recorder = hold_recorder()) {
    recorder->reportError(code, text);
    if (!recorder->hasOverflowed()) severity = Severity::kVERBOSE;  // it is the recorder's to tell of the error
  }
  if (nv::ILogger* logger = this->logger()) logger->log(severity, text);
}

}  // namespace lathe::api
