// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/program_lines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/level_quotient.h"

namespace lathe::cuda {
namespace {

// How many operands and results a register is.
int64_t reads_of(const Program& program, size_t reg) {
  int64_t reads = std::ranges::count(program.outputs, reg);
  for (const Instruction& instruction : program.code)
    for (int i = 0; i < opcode_info(static_cast<int>(instruction.op))->operands; ++i)
      reads += instruction.operands[static_cast<size_t>(i)] == reg;
  return reads;
}

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

// Levels in the middle of a program: clip(round(x / scale) + zero, low, high), of which only the last is read by
// others. The quotient is of x within the bounds times the scale, and the clip has nothing left to do.
struct MiddleLevels {
  float scale, low, high;  // the bounds of round(x / scale)
  size_t clip;             // the instruction
};
// Those whose division is instruction `first`.
std::optional<MiddleLevels> middle_levels(const Program& program, size_t first) {
  const std::optional<float> scale = scale_of_levels(program, program.num_inputs + first);
  const std::span<const Instruction> code = program.code;
  if (!scale || *scale < 0 || code[first + 1].op != Opcode::round) return std::nullopt;
  size_t last = first + 2;
  float zero = 0;
  if (last < code.size() && code[last].op == Opcode::affine && code[last].immediates[0] == 1)
    zero = code[last++].immediates[1];
  constexpr float kMost = 65536;
  if (last >= code.size() || code[last].op != Opcode::clip) return std::nullopt;
  const MiddleLevels levels{*scale, code[last].immediates[0] - zero, code[last].immediates[1] - zero, last};
  const bool is_bounded = levels.low >= -kMost && levels.low <= levels.high && levels.high <= kMost;
  if (!is_bounded || levels.low != std::nearbyint(levels.low) || levels.high != std::nearbyint(levels.high) ||
      zero != std::nearbyint(zero) || !std::isfinite(levels.low * *scale) || !std::isfinite(levels.high * *scale))
    return std::nullopt;
  for (size_t i = first; i < last; ++i)
    if (code[i + 1].operands[0] != program.num_inputs + i || reads_of(program, program.num_inputs + i) != 1)
      return std::nullopt;
  return levels;
}

// What instruction i of such levels makes.
std::string middle_line(const Program& program, const MiddleLevels& levels, size_t i) {
  const Instruction& instruction = program.code[i];
  const std::string x = fmt::format("r{}", instruction.operands[0]);
  if (instruction.op == Opcode::div)
    return LevelQuotient(levels.scale, std::max(std::abs(levels.low), std::abs(levels.high)))
        .of(fmt::format("math::within({}, {}, {})", x, literal(levels.low * levels.scale),
                        literal(levels.high * levels.scale)));
  if (instruction.op == Opcode::round) return fmt::format("math::nearest_level({})", x);
  return i == levels.clip ? x : fmt::format("{} + {}", x, literal(instruction.immediates[1]));
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
  std::optional<MiddleLevels> middle;
  for (const Instruction& instruction : program.code) {
    const size_t i = target - program.num_inputs;
    if (!middle && type == "float") middle = middle_levels(program, i);
    if (middle) {
      text += fmt::format("{}const float r{} = {};\n", indent, target++, middle_line(program, *middle, i));
      if (i == middle->clip) middle.reset();
      continue;
    }
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
