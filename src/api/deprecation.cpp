// SPDX-License-Identifier: Apache-2.0
#include "api/deprecation.h"

namespace lathe::api {

void Deprecation::tell(const Reporter& reporter) noexcept {
  guarded(reporter, name_, [&]() -> Result<> {
    tell(reporter.log());
    return {};
  });
}

void Deprecation::tell(Log& log) {
  if (!told_.exchange(true)) log.print(Severity::warning, "{} is deprecated: {} replaces it", name_, replacement_);
}

}  // namespace lathe::api
