// SPDX-License-Identifier: Apache-2.0
// What the tactics of reductions share.
#pragma once

#include "kernels/cpu/reduce/reduce.h"
#include "tuning/tactic.h"

namespace lathe::cpu {

static_assert(static_cast<int>(ReduceOp::mean) == static_cast<int>(Reduction::mean));
static_assert(static_cast<int>(ReduceOp::sum_square) == static_cast<int>(Reduction::sum_squares));
constexpr Reduction reduction_of(ReduceOp op) { return static_cast<Reduction>(op); }

// Of a reduction; or why no kernel takes it over its axes.
tl::expected<ReduceParams, Refusal> reduce_params(const Problem& problem);

}  // namespace lathe::cpu
