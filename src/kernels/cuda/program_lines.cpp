// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/program_lines.h"

#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <vector>

namespace lathe::cuda {
namespace {

// The number by which the instruction that makes the register divides what is rounded next.
std::optional<float> scale_of_levels(const Program& program, size_t reg) {
  const size_t i = reg - program.num_inputs;
  if (program.code[i].op != Opcode::div || i + 1 == program.code.size()) return std::nullopt;
  const Instruction &next = program.code[i + 1], &division = program.code[i];
  if (!is_rounding(next.op) || next.operands[0] != reg || division.operands[1] < program.num_inputs)
    return std::nullopt;
  const Instruction& divisor = program.code[division.operands[1] - program.num_inputs];
  const float scale = divisor.immediates[0];
  if (divisor.op != Opcode::constant || !std::isnormal(scale) || !std::isnormal(1 / scale)) return std::nullopt;
  return scale;
}

// The function that computes an instruction, which makes the register. What of a GELU is below all numbers of its
// result is left out where it is not multiplied by others.
std::string function_of(const Program& program, const Instruction& instruction, size_t reg, Exactness exactness) {
  if (instruction.op == Opcode::gelu_erf && exactness != Exactness::full) {
    const bool is_result = program.outputs.size() == 1 && program.outputs[0] == reg;
    if (!is_result || exactness == Exactness::bits16) return "math::gelu_erf_16";
    return exactness == Exactness::half ? "math::gelu_erf_half" : "math::gelu_erf_8";
  }
  return fmt::format("instruction::{}", opcode_info(static_cast<int>(instruction.op))->name);
}

}  // namespace

std::string literal(float value) {
  if (std::isnan(value)) return "not_a_number()";
  if (std::isinf(value)) return value < 0 ? "-infinity()" : "infinity()";
  return fmt::format("{:a}f", value);
}

std::string program_lines(const Program& program, std::string_view type, std::string_view indent, Exactness exactness) {
  std::string text;
  size_t target = program.num_inputs;
  for (const Instruction& instruction : program.code) {
    if (const std::optional<float> scale = type == "float" ? scale_of_levels(program, target) : std::nullopt) {
      text += fmt::format("{}const float r{} = math::divided_by(r{}, {}, {});\n", indent, target++,
                          instruction.operands[0], literal(*scale), literal(1 / *scale));
      continue;
    }
    const OpcodeInfo* info = opcode_info(static_cast<int>(instruction.op));
    std::vector<std::string> arguments;
    for (int i = 0; i < info->operands; ++i)
      arguments.push_back(fmt::format("r{}", instruction.operands[static_cast<size_t>(i)]));
    for (int i = 0; i < info->immediates; ++i)
      arguments.push_back(fmt::format("{}({})", type, literal(instruction.immediates[static_cast<size_t>(i)])));
    const std::string function = function_of(program, instruction, target, exactness);
    text += fmt::format("{}const {} r{} = {}({});\n", indent, type, target++, function, fmt::join(arguments, ", "));
  }
  return text;
}

}  // namespace lathe::cuda
