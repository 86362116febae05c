// SPDX-License-Identifier: Apache-2.0
// Positions of the largest or smallest elements along an axis.
#include "kernels/axes_tactic.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/reduce/reduction.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {
namespace {

std::string_view value_type(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  if (problem.inputs[0].is_computed()) return "float";  // programs compute in it
  if (is_short_float(dtype)) return "float";
  if (dtype == DType::f64) return "double";
  return dtype == DType::u64 ? "uint64" : "int64";
}

RowReduction reduction_of(const Problem& problem) {
  const auto& attrs = problem.attrs<ArgReduceAttrs>();
  const Operand& x = problem.inputs[0];
  const std::string_view value = value_type(problem);
  RowReduction reduction{IndexSpace(x), "arg_reduce/arg_reduce.cuh",
                         fmt::format("Extreme<{}, {}, {}>", value, attrs.largest, attrs.select_last), 16};
  IndexSpace& space = reduction.space;
  space.reduce(static_cast<size_t>(axis_from_start(attrs.axis, x)));
  attrs.keepdims ? space.add(problem.outputs[0]) : space.add_kept(problem.outputs[0]);
  add_prologue_operands(problem, space);
  space.simplify();
  return reduction;
}

}  // namespace

Matched match_arg_reduce(const Problem& problem) {
  if (!problem.is(OpKind::arg_reduce)) return refuse("not the position of an extreme");
  if (auto reason = refuse_row_problem(problem)) return refuse(*std::move(reason));
  if (!problem.program.is_identity()) return refuse("a program behind integers");
  if (auto reason = refuse_row_input(problem)) return refuse(*std::move(reason));
  return match_rows(problem, reduction_of(problem));
}

}  // namespace lathe::cuda
