// SPDX-License-Identifier: Apache-2.0
// What the tactics of reductions share.
#pragma once

#include "kernels/cpu/reduce/reduce.h"
#include "tuning/problem.h"

namespace lathe::cpu {

Reduction reduction_of(ReduceOp op);

// The axes of a reduction as a bit set of the input's dimensions; nothing when it leaves the input as it is.
std::optional<int64_t> reduced_axes(const Problem& problem);

// Why no kernel takes a reduction over these axes; nullopt when kernels may.
std::optional<std::string> refuse_reduction(const Problem& problem);

}  // namespace lathe::cpu
