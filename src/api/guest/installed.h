// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace lathe::api::guest {

// The path of the runtime library that belongs to this library: what the environment variable LATHE_LEAN_RUNTIME names,
// else liblathe_lean.so.0 in this library's folder, or in ../lib or ../../lib from there.
Result<std::string> installed_lean();

}  // namespace lathe::api::guest
