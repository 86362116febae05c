// SPDX-License-Identifier: Apache-2.0
// What every library of ours says of itself; see lathe.h.
#include "api/report.h"
#include "base/version.h"
#include "lathe.h"

namespace lathe {

const char* latheVersion() noexcept {
  static const std::string text = [] {
    const Version version = library_version();
    return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
  }();
  return text.c_str();
}

const char* lastError() noexcept { return api::last_error(); }

}  // namespace lathe
