// SPDX-License-Identifier: Apache-2.0
#include "api/living_products.h"

namespace lathe::api {

void warn_of_living_products(const Reporter& reporter, const char* maker, bool are_left) noexcept {
  if (!are_left) return;
  guarded(reporter, maker, [&]() -> Result<> {
    reporter.log().print(
        Severity::warning,
        "{} is deleted before objects that it made. They go on working, and keep what they need of it; "
        "with other libraries that is undefined: delete them first",
        maker);
    return {};
  });
}

}  // namespace lathe::api
