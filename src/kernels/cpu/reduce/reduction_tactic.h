// SPDX-License-Identifier: Apache-2.0
// What the tactics of reductions share.
#pragma once

#include "kernels/axes_tactic.h"
#include "kernels/cpu/reduce/reduce.h"

namespace lathe::cpu {

static_assert(static_cast<int>(ReduceOp::mean) == static_cast<int>(Reduction::mean));
static_assert(static_cast<int>(ReduceOp::sum_square) == static_cast<int>(Reduction::sum_squares));
constexpr Reduction reduction_of(ReduceOp op) { return static_cast<Reduction>(op); }

// Of a reduction; or why no kernel takes it over its axes.
inline tl::expected<ReduceParams, Refusal> reduce_params(const Problem& problem) {
  const auto axes = reduced_axes(problem);
  if (!axes) return tl::unexpected(axes.error());
  ReduceParams params{reduction_of(problem.attrs<ReduceAttrs>().op), 0};
  for (const int axis : *axes) params.axes |= 1u << axis;
  return params;
}

}  // namespace lathe::cpu
