// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <fmt/core.h>

// LATHE_VERSION comes from the project's version in CMakeLists.txt.

namespace lathe {

std::string Version::to_string() const { return fmt::format("{}.{}.{}.{}", major, minor, patch, build); }

Version library_version() { return Version LATHE_VERSION; }

}  // namespace lathe
