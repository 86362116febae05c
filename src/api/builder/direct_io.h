// SPDX-License-Identifier: Apache-2.0
// BuilderFlag::kDIRECT_IO.
#pragma once

#include "api/builder/builder_config.h"
#include "api/network/network.h"
#include "plan/plan.h"

namespace lathe::api {

// With the flag, fails where a step of the plan does nothing but reorder an input or output of the network for which
// the application has called ITensor::setAllowedFormats().
Result<> check_direct_io(const NetworkDefinition& network, const BuilderConfig& settings, const plan::Plan& plan);

}  // namespace lathe::api
