// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/reduce/reduction_tactic.h"

namespace lathe::cpu {

Reduction reduction_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return Reduction::sum;
    case ReduceOp::prod:
      return Reduction::product;
    case ReduceOp::max:
      return Reduction::max;
    case ReduceOp::min:
      return Reduction::min;
    case ReduceOp::mean:
      return Reduction::mean;
    case ReduceOp::l1:
      return Reduction::l1;
    case ReduceOp::l2:
      return Reduction::l2;
    case ReduceOp::log_sum:
      return Reduction::log_sum;
    case ReduceOp::log_sum_exp:
      return Reduction::log_sum_exp;
    case ReduceOp::sum_square:
      break;
  }
  return Reduction::sum_squares;
}

std::optional<int64_t> reduced_axes(const Problem& problem) {
  const auto& attrs = problem.attrs<ReduceAttrs>();
  Ints axes = attrs.axes;
  if (problem.inputs.size() > 1 && problem.inputs[1].constant) {
    axes.clear();
    for (int64_t i = 0; i < problem.inputs[1].constant->volume(); ++i)
      axes.push_back(problem.inputs[1].constant->at(i));
  }
  const int64_t rank = problem.inputs[0].rank();
  if (axes.empty() && attrs.noop_with_empty_axes) return std::nullopt;
  int64_t set = axes.empty() ? (int64_t{1} << rank) - 1 : 0;
  for (int64_t axis : axes) set |= int64_t{1} << (axis < 0 ? axis + rank : axis);
  return set;
}

std::optional<std::string> refuse_reduction(const Problem& problem) {
  if (problem.inputs[0].rank() == 0) return "a scalar";
  if (problem.inputs.size() > 1 && !problem.inputs[1].omitted && !problem.inputs[1].constant)
    return "its axes are not constant";
  if (!reduced_axes(problem)) return "its axes leave the input as it is";
  return std::nullopt;
}

}  // namespace lathe::cpu
