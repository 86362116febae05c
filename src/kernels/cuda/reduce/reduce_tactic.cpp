// SPDX-License-Identifier: Apache-2.0
// Reductions over known axes, and pooling by one window over everything.
#include <numeric>

#include "kernels/axes_tactic.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/reduce/reduction.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {
namespace {

// Of the device code, by the numbers of the ops.
constexpr std::string_view kNames[] = {"Sum",         "Product",       "Largest", "Smallest",  "Mean",
                                       "AbsoluteSum", "EuclideanNorm", "LogSum",  "LogSumExp", "SquareSum"};
static_assert(std::size(kNames) == static_cast<size_t>(ReduceOp::sum_square) + 1);

// Pooling by one window over everything is a reduction.
bool is_global_pooling(const Problem& problem) {
  if (!problem.is(OpKind::pooling) || problem.outputs.size() > 1) return false;
  const auto& attrs = problem.attrs<PoolingAttrs>();
  const Operand& x = problem.inputs[0];
  const size_t lead = x.dims.size() - attrs.window.size();
  if (attrs.op == PoolingOp::lp && attrs.p > 2) return false;
  for (const int64_t pad : attrs.pads_begin)
    if (pad != 0) return false;
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    if (x.dims[lead + i] != Expr(attrs.window[i]) || problem.outputs[0].dims[lead + i] != Expr(1)) return false;
    if (i < attrs.dilation.size() && attrs.dilation[i] != 1) return false;
    if (i < attrs.pads_end.size() && attrs.pads_end[i] != 0) return false;
  }
  return true;
}

ReduceOp op_of(const Problem& problem) {
  if (problem.is(OpKind::reduce)) return problem.attrs<ReduceAttrs>().op;
  const auto& attrs = problem.attrs<PoolingAttrs>();
  if (attrs.op == PoolingOp::lp) return attrs.p == 1 ? ReduceOp::l1 : ReduceOp::l2;
  return attrs.op == PoolingOp::max ? ReduceOp::max : ReduceOp::mean;
}

// The type that is computed with.
std::string_view value_type(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  const ReduceOp op = op_of(problem);
  if (problem.inputs[0].is_computed()) return "float";  // programs compute in it
  if (is_short_float(dtype)) return "float";
  if (dtype == DType::f64 || op == ReduceOp::l2 || op == ReduceOp::log_sum || op == ReduceOp::log_sum_exp)
    return "double";
  return dtype == DType::u64 ? "uint64" : "int64";
}

tl::expected<std::vector<int>, Refusal> pooled_axes(const Problem& problem) {
  std::vector<int> axes(problem.attrs<PoolingAttrs>().window.size());
  std::iota(axes.begin(), axes.end(), problem.inputs[0].rank() - static_cast<int>(axes.size()));
  return axes;
}

// Tensor 0 is x, 1 is y; the operands of the program and of the prologue follow.
IndexSpace space_of(const Problem& problem, const std::vector<int>& axes) {
  IndexSpace space(problem.inputs[0]);
  for (const int axis : axes) space.reduce(static_cast<size_t>(axis));
  const bool keeps = problem.is(OpKind::pooling) || problem.attrs<ReduceAttrs>().keepdims;
  const auto add = [&](const Operand& operand) { keeps ? space.add(operand) : space.add_kept(operand); };
  add(problem.outputs[0]);
  for (const Operand& operand : problem.operands) add(operand);
  add_prologue_operands(problem, space);
  space.simplify();
  return space;
}

RowReduction reduction_of(const Problem& problem, const std::vector<int>& axes) {
  const std::string_view value = value_type(problem);
  const ReduceOp op = op_of(problem);
  const uint32_t bytes = (value == "float" ? 4 : 8) * (op == ReduceOp::log_sum_exp ? 2 : 1);
  return {space_of(problem, axes), "reduce/reduce.cuh", fmt::format("{}<{}>", kNames[static_cast<size_t>(op)], value),
          bytes};
}

}  // namespace

Matched match_reduce(const Problem& problem) {
  if (!problem.is(OpKind::reduce) && !is_global_pooling(problem)) return refuse("not a reduction");
  if (auto reason = refuse_row_problem(problem)) return refuse(*std::move(reason));
  const auto axes = problem.is(OpKind::pooling) ? pooled_axes(problem) : reduced_axes(problem);
  if (!axes) return tl::unexpected(axes.error());
  if (value_type(problem) != "float" && !problem.program.is_identity())
    return refuse("a program behind doubles or integers");
  if (value_type(problem) != "float" && problem.inputs[0].dtype != problem.outputs[0].dtype)
    return refuse("its result is of another type");
  if (auto reason = refuse_row_input(problem)) return refuse(*std::move(reason));
  return match_rows(problem, reduction_of(problem, *axes));
}

}  // namespace lathe::cuda
