// SPDX-License-Identifier: Apache-2.0
#include "api/deprecation.h"

namespace lathe::api {

void Deprecation::tell(const Reporter& reporter) noexcept {
  if (told_.exchange(true)) return;
  guarded(reporter, function_, [&]() -> Result<> {
    reporter.log().print(Severity::warning, "{} is deprecated: {} replaces it", function_, replacement_);
    return {};
  });
}

}  // namespace lathe::api
