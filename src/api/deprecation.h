// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "api/report.h"

namespace lathe::api {

// A function or a value that works, and that later generations do not have: one object for each, for the whole process.
class Deprecation {
 public:
  constexpr Deprecation(const char* name, const char* replacement) : name_(name), replacement_(replacement) {}
  // Warns the first time. Thread-safe.
  void tell(const Reporter& reporter) noexcept;
  void tell(Log& log);

 private:
  const char* name_;
  const char* replacement_;
  std::atomic<bool> told_{false};
};

}  // namespace lathe::api
