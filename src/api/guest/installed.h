// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace lathe::api::guest {

// The path of the runtime library that belongs to this library: what the environment variable LATHE_LEAN_RUNTIME names,
// else the one in this library's folder or in ../lib beside it.
Result<std::string> installed_lean();

}  // namespace lathe::api::guest
