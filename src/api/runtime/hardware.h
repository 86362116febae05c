// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log.h"
#include "device/device.h"
#include "plan/header.h"

namespace lathe::api {

// One warning for each property in which the device differs from the one that the plan was tuned on; none where the
// plan was built for others, too.
void warn_of_other_hardware(const plan::PlanHeader& header, const Device& device, Log& log);

}  // namespace lathe::api
