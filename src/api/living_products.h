// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/report.h"

namespace lathe::api {

// For destructors of objects whose products keep alive what they need of them: one warning where some are left.
void warn_of_living_products(const Reporter& reporter, const char* maker, bool are_left) noexcept;

}  // namespace lathe::api
