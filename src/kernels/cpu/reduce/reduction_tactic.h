// SPDX-License-Identifier: Apache-2.0
// What the tactics of reductions share.
#pragma once

#include "kernels/cpu/reduce/reduce.h"
#include "tuning/problem.h"

namespace lathe::cpu {

Reduction reduction_of(ReduceOp op);

// A bit set of the input's dimensions; nothing when there is nothing to reduce.
std::optional<int64_t> reduced_axes(const Problem& problem);

// Why its axes are not for a kernel.
std::optional<std::string> refuse_reduction(const Problem& problem);

}  // namespace lathe::cpu
