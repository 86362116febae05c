// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/staging_tactic.h"

#include <bit>

#include "kernels/cuda/collapse.h"

namespace lathe::cuda {

const Tactic& pointwise_tactic();

namespace {

constexpr int64_t kWorkspaceAlignment = 256;

// The program on staged results, as a region of its own.
Problem pointwise_of(const Problem& problem, const Operand& staged) {
  Problem pointwise;
  pointwise.target = problem.target;
  pointwise.operands = {staged};
  pointwise.operands.insert(pointwise.operands.end(), problem.operands.begin(), problem.operands.end());
  pointwise.outputs = problem.outputs;
  pointwise.program = problem.program.outputs.empty() ? Program{1, {}, {0}} : problem.program;
  pointwise.symbols = problem.symbols;
  return pointwise;
}

}  // namespace

Staged stage(const Problem& problem, DType dtype, Layout layout) {
  Staged staged;
  const Operand& output = problem.outputs[0];
  staged.operand.dtype = dtype;
  staged.operand.dims = output.dims;
  staged.operand.opt_dims = output.opt_dims;
  staged.operand.strides = dense_strides(output.dims, layout);
  staged.operand.opt_strides = dense_strides(output.opt_dims, layout);
  const Expr bytes = volume(output.dims) * static_cast<int64_t>(size_of(dtype));
  staged.bytes = ceildiv(bytes, kWorkspaceAlignment) * kWorkspaceAlignment;
  return staged;
}

std::optional<std::string> refuse_pointwise(const Problem& problem, const Staged& staged) {
  return pointwise_tactic().refuse(pointwise_of(problem, staged.operand));
}

Result<> add_pointwise(const Problem& problem, const Staged& staged, size_t first_operand, Emission& emission) {
  const Problem pointwise = pointwise_of(problem, staged.operand);
  LATHE_ASSIGN(Emission made, pointwise_tactic().emit(pointwise, pointwise_tactic().configs(pointwise).front()));
  for (SourceLaunch& launch : made.launches) {
    for (LaunchArg& arg : launch.launch.args) {
      if (arg.kind != LaunchArg::input) continue;
      const size_t operand = made.inputs[arg.index].index;
      arg = operand == 0 ? LaunchArg{LaunchArg::workspace, 0, 0}
                         : LaunchArg{LaunchArg::input, static_cast<uint32_t>(first_operand + operand - 1), {}};
    }
    emission.launches.push_back(std::move(launch));
  }
  return {};
}

double pointwise_us(const Problem& problem, const Staged& staged) {
  const Problem pointwise = pointwise_of(problem, staged.operand);
  return pointwise_tactic().configs(pointwise).front().predicted_us;
}

int64_t alignment_of(const Operand& operand) {
  const auto size = static_cast<int64_t>(size_of(operand.dtype));
  int64_t elements = 16 / size;
  while (elements > 1 && mod(operand.offset, elements) != Expr(0)) elements /= 2;
  return elements * size;
}

LaunchArg number_arg(Expr value) { return {LaunchArg::number, 0, std::move(value)}; }

LaunchArg float_arg(float value) { return number_arg(int64_t{std::bit_cast<uint32_t>(value)}); }

}  // namespace lathe::cuda
