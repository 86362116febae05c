// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/epilogue.h"

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace lathe::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kLevelsLength = 4;  // instructions

// The operations that finish_tile() runs on a whole tile at once.
bool runs_on_tile(Opcode op) { return op == Opcode::add || op == Opcode::mul || is_activation(op); }

// The instruction as a step that continues `chain_register`, or nothing.
std::optional<EpilogueStep> as_step(const Instruction& instruction, int chain_register, int inputs) {
  if (!runs_on_tile(instruction.op)) return std::nullopt;
  EpilogueStep step{static_cast<StepOp>(instruction.op), -1, instruction.immediates[0], instruction.immediates[1]};
  if (instruction.op != Opcode::add && instruction.op != Opcode::mul)
    return instruction.operands[0] == chain_register ? std::optional(step) : std::nullopt;
  const int a = instruction.operands[0], b = instruction.operands[1];
  const int other = a == chain_register ? b : b == chain_register ? a : 0;
  if (other < 1 || other >= inputs) return std::nullopt;
  step.operand = other - 1;
  return step;
}

// clip(round(a / x), z, w) * y, from instruction `at` on: how values are quantised and dequantised again. A division by
// a power of two is a multiplication.
std::optional<EpilogueStep> levels_at(const Program& program, size_t at, int chain_register) {
  if (at + kLevelsLength > program.code.size()) return std::nullopt;
  const std::span<const Instruction> code = std::span(program.code).subspan(at, kLevelsLength);
  const auto [quotient, round, clip, product] = std::tuple(code[0], code[1], code[2], code[3]);
  const int first = program.num_inputs + static_cast<int>(at);
  if (quotient.operands[0] != chain_register || round.op != Opcode::round || round.operands[0] != first ||
      clip.op != Opcode::clip || clip.operands[0] != first + 1 || product.op != Opcode::affine ||
      product.operands[0] != first + 2 || product.immediates[1] != 0)
    return std::nullopt;
  EpilogueStep step{StepOp::levels, -1, 0, product.immediates[0], clip.immediates[0], clip.immediates[1]};
  int exponent = 0;
  if (quotient.op == Opcode::div && quotient.operands[1] >= program.num_inputs) {
    const Instruction& divisor = program.code[quotient.operands[1] - program.num_inputs];
    if (divisor.op != Opcode::constant) return std::nullopt;
    step.x = divisor.immediates[0];
  } else if (quotient.op == Opcode::affine && quotient.immediates[1] == 0 &&
             std::abs(std::frexp(quotient.immediates[0], &exponent)) == 0.5f && std::abs(exponent) < 120) {
    step.x = 1 / quotient.immediates[0];
  } else {
    return std::nullopt;
  }
  return step;
}

// The program as a chain; nothing when it is none. Constants are read by divisions alone.
std::optional<std::vector<EpilogueStep>> chain_of(const Program& program) {
  std::vector<EpilogueStep> chain;
  int current = 0;
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (program.code[i].op == Opcode::constant) continue;
    std::optional<EpilogueStep> step = levels_at(program, i, current);
    if (step)
      i += kLevelsLength - 1;
    else
      step = as_step(program.code[i], current, program.num_inputs);
    if (!step) return std::nullopt;
    chain.push_back(*step);
    current = program.num_inputs + static_cast<int>(i);
  }
  if (program.outputs[0] != current) return std::nullopt;
  return chain;
}

// Adds the next step of the chain to the usual form; false when it does not fit there.
bool take_step(BoundEpilogue& bound, const EpilogueStep& step, bool& clipped) {
  if (clipped || step.op == StepOp::mul) return false;
  if (step.op == StepOp::add) {
    const EpilogueOperand& operand = bound.operands[step.operand];
    if (operand.column_stride != 1) return false;
    if (!operand.varies_by_row) {
      if (bound.bias || bound.has_act) return false;
      bound.bias = operand.data;
      return true;
    }
    int& residual = bound.has_act ? bound.late_residual : bound.residual;
    if (residual >= 0) return false;
    residual = step.operand;
    return true;
  }
  if (step.op == StepOp::relu || step.op == StepOp::clip) {
    clipped = true;
    bound.low = step.op == StepOp::relu ? 0 : step.x;
    if (step.op == StepOp::clip) bound.high = step.y;
    return true;
  }
  if (bound.has_act || bound.late_residual >= 0) return false;
  bound.has_act = true;
  bound.act = step;
  return true;
}

}  // namespace

Result<Epilogue> compile_epilogue(const Program* program) {
  Epilogue epilogue;
  if (!program) {
    epilogue.program.num_inputs = 1;
    epilogue.program.outputs = {0};
    epilogue.is_chain = true;
    return epilogue;
  }
  if (program->outputs.size() != 1 || program->num_inputs < 1)
    return fail(ErrorCode::plan_malformed,
                "epilogue program has {} outputs and {} inputs: it needs one output and the accumulator as input 0; "
                "build the plan again",
                program->outputs.size(), program->num_inputs);
  epilogue.program = *program;
  std::optional<std::vector<EpilogueStep>> chain = chain_of(*program);
  epilogue.is_chain = chain.has_value();
  if (chain) epilogue.chain = *std::move(chain);
  if (!epilogue.is_chain) {
    epilogue.block = BlockProgram(*program);
    // Kept small enough for the stack of any thread; a validated program cannot need more.
    if (epilogue.block.scratch_bytes() > kMaxProgramScratch)
      return fail(ErrorCode::plan_malformed, "epilogue program needs {} bytes of scratch, at most {} are supported",
                  epilogue.block.scratch_bytes(), kMaxProgramScratch);
  }
  return epilogue;
}

Result<> check_epilogue(const Epilogue& epilogue, std::span<const TensorArg> operands, const TensorArg& output) {
  if (static_cast<int>(operands.size()) != epilogue.operands())
    return fail(ErrorCode::plan_malformed, "the epilogue takes {} operands, the step has {}; build the plan again",
                epilogue.operands(), operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorArg& operand = operands[i];
    bool fits = operand.dtype == DType::f32 && operand.rank == output.rank;
    for (int d = 0; fits && d < output.rank; ++d) fits = operand.dims[d] == output.dims[d] || operand.dims[d] == 1;
    if (!fits)
      return fail(ErrorCode::shape_mismatch, "epilogue operand {} is not f32 or does not broadcast to the output", i);
  }
  return {};
}

BoundEpilogue bind_epilogue(const Epilogue& epilogue, std::span<const TensorArg> operands, const TensorArg& output,
                            int column_dim) {
  BoundEpilogue bound;
  bound.epilogue = &epilogue;
  bound.count = static_cast<int>(operands.size());
  for (int i = 0; i < bound.count; ++i) {
    EpilogueOperand& operand = bound.operands[i];
    operand.data = operands[i].as<float>();
    operand.size = size_of(operands[i].dtype);
    operand.column_stride = broadcast_stride(operands[i], column_dim);
    for (int d = 0; d < output.rank; ++d)
      if (d != column_dim && broadcast_stride(operands[i], d) != 0) operand.varies_by_row = true;
  }
  bound.low = -kInfinity;
  bound.high = kInfinity;
  bound.fused = epilogue.is_chain;
  bool clipped = false;
  for (const EpilogueStep& step : epilogue.chain) bound.fused = bound.fused && take_step(bound, step, clipped);
  bound.linear = bound.fused && !bound.has_act && bound.late_residual < 0;
  return bound;
}

}  // namespace lathe::cpu
