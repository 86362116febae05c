// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/network/optimization_profile.h"
#include "lowering/build.h"

namespace lathe::api {

// What an optimization profile says, as builds take it.
Result<ProfileShapes> shapes_of(const OptimizationProfile& profile);

}  // namespace lathe::api
