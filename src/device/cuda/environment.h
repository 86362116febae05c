// SPDX-License-Identifier: Apache-2.0
// What of CUDA this machine has, and what is wrong with it: for `lathe doctor`. No context is made on any device.
#pragma once

#include "device/survey.h"

namespace lathe::cuda {

Survey survey();

}  // namespace lathe::cuda
