// SPDX-License-Identifier: Apache-2.0
// Reductions over known axes, and pooling by one window over everything.
#include <numeric>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/reduce/reduction.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {
namespace {

std::string_view device_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "Sum";
    case ReduceOp::prod:
      return "Product";
    case ReduceOp::max:
      return "Largest";
    case ReduceOp::min:
      return "Smallest";
    case ReduceOp::mean:
      return "Mean";
    case ReduceOp::l1:
      return "AbsoluteSum";
    case ReduceOp::l2:
      return "EuclideanNorm";
    case ReduceOp::log_sum:
      return "LogSum";
    case ReduceOp::log_sum_exp:
      return "LogSumExp";
    case ReduceOp::sum_square:
      break;
  }
  return "SquareSum";
}

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
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return "float";
  if (dtype == DType::f64 || op == ReduceOp::l2 || op == ReduceOp::log_sum || op == ReduceOp::log_sum_exp)
    return "double";
  return dtype == DType::u64 ? "uint64" : "int64";
}

// The reduced dims; nothing when the input stays as it is.
std::vector<size_t> reduced_dims(const Problem& problem) {
  if (problem.is(OpKind::pooling)) {
    std::vector<size_t> dims(problem.attrs<PoolingAttrs>().window.size());
    std::iota(dims.begin(), dims.end(), problem.inputs[0].dims.size() - dims.size());
    return dims;
  }
  const auto& attrs = problem.attrs<ReduceAttrs>();
  const int64_t rank = problem.inputs[0].rank();
  Ints axes = attrs.axes;
  if (problem.inputs.size() > 1 && problem.inputs[1].constant) {
    axes.clear();
    for (int64_t i = 0; i < problem.inputs[1].constant->volume(); ++i)
      axes.push_back(problem.inputs[1].constant->at(i));
  }
  if (axes.empty() && !attrs.noop_with_empty_axes)
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  std::vector<size_t> dims;
  for (const int64_t axis : axes) dims.push_back(static_cast<size_t>(axis < 0 ? axis + rank : axis));
  return dims;
}

// Tensor 0 is x, 1 is y; the operands of the program and of the prologue follow.
IndexSpace space_of(const Problem& problem) {
  IndexSpace space(problem.inputs[0]);
  for (const size_t dim : reduced_dims(problem)) space.reduce(dim);
  const bool keeps = problem.is(OpKind::pooling) || problem.attrs<ReduceAttrs>().keepdims;
  const auto add = [&](const Operand& operand) { keeps ? space.add(operand) : space.add_kept(operand); };
  add(problem.outputs[0]);
  for (const Operand& operand : problem.operands) add(operand);
  add_prologue_operands(problem, space);
  space.simplify();
  return space;
}

RowReduction reduction_of(const Problem& problem) {
  const std::string_view value = value_type(problem);
  const ReduceOp op = op_of(problem);
  const uint32_t bytes = (value == "float" ? 4 : 8) * (op == ReduceOp::log_sum_exp ? 2 : 1);
  return {space_of(problem), "reduce/reduce.cuh", fmt::format("{}<{}>", device_name(op), value), bytes};
}

}  // namespace

Matched match_reduce(const Problem& problem) {
  if (!problem.is(OpKind::reduce) && !is_global_pooling(problem)) return refuse("not a reduction");
  if (auto reason = refuse_row_problem(problem)) return refuse(*std::move(reason));
  if (problem.has_input(1) && !problem.inputs[1].constant) return refuse("its axes are not constant");
  if (reduced_dims(problem).empty()) return refuse("its axes leave the input as it is");
  if (value_type(problem) != "float" && !problem.program.is_identity())
    return refuse("a program behind doubles or integers");
  if (value_type(problem) != "float" && problem.inputs[0].dtype != problem.outputs[0].dtype)
    return refuse("its result is of another type");
  if (auto reason = refuse_row_input(problem)) return refuse(*std::move(reason));
  return match_rows(problem, reduction_of(problem));
}

}  // namespace lathe::cuda
