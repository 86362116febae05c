// SPDX-License-Identifier: Apache-2.0
// Callbacks of the application that may throw.
#pragma once

#include <exception>

#include "base/result.h"

namespace lathe::api {

// The callback's answer; an exception becomes an error of code `code` that names `callback`.
template <class Call>
auto call_application(const char* callback, ErrorCode code, Call&& call) -> Result<decltype(call())> {
  try {
    return call();
  } catch (const std::exception& exception) {
    return fail(code, "the application's {} has thrown an exception: {}", callback, exception.what());
  } catch (...) {
    return fail(code, "the application's {} has thrown an exception", callback);
  }
}

}  // namespace lathe::api
