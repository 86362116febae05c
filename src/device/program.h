// SPDX-License-Identifier: Apache-2.0
// The fusion program: the pointwise expression that a region evaluates, on every device. One program runs as the
// epilogue of a GEMM, convolution or pooling, before the inputs of a kernel that computes what it reads, and alone as a
// pointwise kernel.
//
// Registers: 0 .. num_inputs-1 are the program's inputs; instruction i defines register num_inputs + i. As an epilogue,
// input 0 is the accumulator (as a prologue, an element that was read) and the others are the kernel's extra operands,
// broadcast to the shape of the output (of what is read).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe {

// All arithmetic is f32.
enum class Opcode : uint8_t {
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) name = number,
#include "base/scalars.def"
};

// To integers, or to 8-bit floats.
constexpr bool is_rounding(Opcode op) {
  return op == Opcode::round || op == Opcode::round_e4m3 || op == Opcode::round_e5m2;
}

struct Instruction {
  Opcode op;
  std::array<uint16_t, 3> operands{};  // registers; unused ones are 0
  std::array<float, 2> immediates{};
  bool operator==(const Instruction&) const = default;
};

struct Program {
  uint16_t num_inputs = 0;
  std::vector<Instruction> code;
  std::vector<uint16_t> outputs;  // registers: one for each result

  bool operator==(const Program&) const = default;
  bool is_identity() const { return code.empty() && outputs.size() == 1 && outputs[0] == 0; }
};

struct OpcodeInfo {
  Opcode op;
  std::string_view name;
  int operands;
  int immediates;  // the parameters of its formula
};
// nullptr when `number` names no instruction.
const OpcodeInfo* opcode_info(int64_t number);
// Whether the instruction is an activation, of one operand.
bool is_activation(Opcode op);

// Limits that every kernel may rely on; validate() enforces them.
inline constexpr int kMaxProgramInputs = 16;
inline constexpr int kMaxProgramCode = 64;
inline constexpr int kMaxProgramOutputs = 8;

Result<> validate(const Program& program);

// One line: "in=2; r2=add r0 r1; r3=clip r2 0 6; out r3". parse() validates.
std::string to_text(const Program& program);
Result<Program> parse_program(std::string_view text);

// The plain meaning of the program, for one element: the oracle of every kernel that runs programs.
void evaluate(const Program& program, std::span<const float> inputs, std::span<float> outputs);

}  // namespace lathe
