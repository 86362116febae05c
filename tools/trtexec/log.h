// SPDX-License-Identifier: Apache-2.0
// Lines as trtexec prints them: "[11/24/2026-10:18:14] [I] text", what the library says with "[TRT] " before it.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "NvInfer.h"

namespace lathe::trtexec {

// Information goes to standard output, warnings and errors to standard error. Thread-safe.
class TrtexecLog final : public nvinfer1::ILogger {
 public:
  void log(Severity severity, const char* message) noexcept override;
  void set_verbose(bool verbose) { verbose_ = verbose; }
  // While paused, only errors and what the library says are written.
  bool set_paused(bool paused) { return std::exchange(paused_, paused); }
  int library_errors() const { return errors_; }  // so far

  template <class... Arguments>
  void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    write(Severity::kINFO, "", fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    write(Severity::kWARNING, "", fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    write(Severity::kERROR, "", fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  void verbose(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    write(Severity::kVERBOSE, "", fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  void blank() { write(Severity::kINFO, "", ""); }

 private:
  void write(Severity severity, std::string_view origin, std::string_view text);

  std::mutex mutex_;
  bool verbose_ = false, paused_ = false;
  int errors_ = 0;
};

// Pauses a log for as long as it lives, where `pause` says so; one that is paused stays so.
class LogPause {
 public:
  LogPause(TrtexecLog& log, bool pause) : log_(log), before_(log.set_paused(pause)) {
    if (before_) log.set_paused(true);
  }
  ~LogPause() { log_.set_paused(before_); }
  LogPause(const LogPause&) = delete;
  LogPause& operator=(const LogPause&) = delete;

 private:
  TrtexecLog& log_;
  bool before_;
};

}  // namespace lathe::trtexec
