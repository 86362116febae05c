// SPDX-License-Identifier: Apache-2.0
// nonzero and compress on the device: select.cuh.
#pragma once

#include "tuning/counted_tactic.h"

namespace lathe::cuda {

const CountedTactic& select_tactic();

}  // namespace lathe::cuda
