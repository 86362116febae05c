// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace lathe::cli {

// What was asked cannot be done: the message, exit status 1.
struct Failure : std::runtime_error {
  [[nodiscard]] explicit Failure(const std::string& message) : std::runtime_error(message) {}
};

// What was asked makes no sense: the message and a pointer to --help, exit status 2.
struct UsageError : std::runtime_error {
  [[nodiscard]] explicit UsageError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace lathe::cli
