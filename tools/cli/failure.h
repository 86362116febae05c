// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace lathe::cli {

// What was asked cannot be done: the message, exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What was asked makes no sense: the message and a pointer to --help, exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lathe::cli
