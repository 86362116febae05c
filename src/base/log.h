// SPDX-License-Identifier: Apache-2.0
// Where log lines go. The API layer adapts the application's ILogger to this; nothing below it knows TensorRT's names.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace lathe {

enum class Severity { internal_error, error, warning, info, verbose };

// Thread-safe by contract. `accepts` lets callers skip the cost of formatting.
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(Severity severity, std::string_view line) = 0;
  virtual bool accepts(Severity severity) const { return true; }

  template <class... Args>
  void print(Severity severity, fmt::format_string<Args...> format, Args&&... args) {
    if (accepts(severity)) write(severity, fmt::format(format, std::forward<Args>(args)...));
  }
};

// Drops every line.
Log& null_log();

}  // namespace lathe
