// SPDX-License-Identifier: Apache-2.0
// About how long CPU kernels take, from what the target says of its cores.
#pragma once

#include "tuning/tactic.h"

namespace lathe::cpu {

// Microseconds of the configuration that a kernel lists at `rank`: the longer of computing and of moving the operands,
// and a fork. Kernels list their configurations best first by rules of their own; each is taken to be 2 % slower than
// the one before it. `padded` says how many products are computed for each that the op asks for: 16 where tiles of 16
// columns have one output channel of a group each.
double predicted_us(const Problem& problem, size_t rank, double padded = 1);

}  // namespace lathe::cpu
