// SPDX-License-Identifier: Apache-2.0
// Kernels that take what faster ones of the same op refuse.
#pragma once

#include "kernels/cpu/cost_tactic.h"

namespace lathe::cpu {

// Their predicted time: by so much longer that the tuner measures none of them where a faster one takes the problem.
inline double fallback_us(const Problem& problem) { return 16 * predicted_us(problem, 0); }

}  // namespace lathe::cpu
