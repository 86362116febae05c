// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/staging_tactic.h"

#include <bit>

#include "kernels/cuda/source.h"

namespace lathe::cuda {

const Tactic& pointwise_tactic();

namespace {

// The program on staged results, as a region of its own.
Problem region_of(const Problem& problem, DType dtype, Layout layout) {
  const Operand& output = problem.outputs[0];
  Operand staged;
  staged.dtype = dtype;
  staged.dims = output.dims;
  staged.opt_dims = output.opt_dims;
  staged.strides = dense_strides(output.dims, layout);
  staged.opt_strides = dense_strides(output.opt_dims, layout);
  Problem region;
  region.target = problem.target;
  region.operands = {std::move(staged)};
  region.operands.insert(region.operands.end(), problem.operands.begin(), problem.operands.end());
  region.outputs = problem.outputs;
  region.program = problem.program.outputs.empty() ? Program{1, {}, {0}} : problem.program;
  region.symbols = problem.symbols;
  return region;
}

bool is_along(const Operand& given, const Operand& output, size_t dimension) {
  const Operand operand = broadcast(given, output);
  for (size_t d = 0; d < output.dims.size(); ++d)
    if (operand.strides[d] != Expr(d == dimension ? 1 : 0) && output.dims[d] != Expr(1)) return false;
  return given.constant != nullptr;
}

}  // namespace

std::optional<std::vector<ChainLink>> chain_of(const Problem& problem, size_t dimension) {
  const Program& program = problem.program;
  std::vector<ChainLink> chain;
  uint16_t value = 0;
  for (const Instruction& each : program.code) {
    const uint16_t first = each.operands[0], second = each.operands[1];
    ChainLink link{&each, std::nullopt};
    if ((each.op == Opcode::add || each.op == Opcode::mul) && (first == value) != (second == value)) {
      const uint16_t other = first == value ? second : first;
      if (other == 0 || other >= program.num_inputs) return std::nullopt;
      link.operand = other - 1u;
      if (!is_along(problem.operands[*link.operand], problem.outputs[0], dimension)) return std::nullopt;
    } else if (first != value) {
      return std::nullopt;
    }
    value = static_cast<uint16_t>(program.num_inputs + chain.size());
    chain.push_back(link);
  }
  if (!program.outputs.empty() && program.outputs[0] != value) return std::nullopt;
  return chain;
}

Finishing::Finishing(const Problem& problem, DType dtype, Layout layout) : region_(region_of(problem, dtype, layout)) {
  Matched matched = pointwise_tactic().match(region_);
  if (!matched) {
    refusal_ = std::move(matched.error().reason);
    return;
  }
  match_ = *std::move(matched);
  config_ = match_->configs().front();
}

Expr Finishing::bytes() const {
  constexpr int64_t kWorkspaceAlignment = 256;
  const Expr bytes = volume(staged().dims) * static_cast<int64_t>(size_of(staged().dtype));
  return ceildiv(bytes, kWorkspaceAlignment) * kWorkspaceAlignment;
}

Result<> Finishing::add(size_t first_operand, Emission& emission) const {
  LATHE_ASSIGN(Emission made, match_->emit(config_));
  for (SourceLaunch& launch : made.launches) {
    for (LaunchArg& arg : launch.launch.args) {
      if (arg.kind != LaunchArg::input) continue;
      const size_t operand = made.inputs[arg.index].index;
      arg = operand == 0 ? LaunchArg{LaunchArg::workspace, 0, 0}
                         : LaunchArg{LaunchArg::input, static_cast<uint32_t>(first_operand + operand - 1), {}};
    }
    emission.launches.push_back(std::move(launch));
  }
  emission.workspace = bytes();
  return {};
}

Result<> evaluate_numbers(const std::vector<LaunchArg>& args, std::span<const int64_t> symbols,
                          std::span<int64_t> values) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind != LaunchArg::number) continue;
    const std::optional<int64_t> value = args[i].value.evaluate(symbols);
    if (!value) return fail(ErrorCode::shape_unknown, "a size depends on what is known while running only");
    values[i] = *value;
  }
  return {};
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
