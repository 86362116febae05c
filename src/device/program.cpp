// SPDX-License-Identifier: Apache-2.0
#include "device/program.h"

#include <cctype>
#include <charconv>
#include <optional>

#include "base/scalar_math.h"

namespace lathe {
namespace {

constexpr OpcodeInfo kOpcodes[] = {
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) {Opcode::name, #name, operands, parameters},
#include "base/scalars.def"
};

const OpcodeInfo* opcode_named(std::string_view name) {
  for (const OpcodeInfo& info : kOpcodes)
    if (info.name == name) return &info;
  return nullptr;
}

Result<> validate_instruction(const Instruction& instruction, size_t index, size_t registers) {
  const OpcodeInfo* info = opcode_info(static_cast<int>(instruction.op));
  if (!info)
    return fail(ErrorCode::invalid_argument, "fusion program: instruction {} has the unknown opcode {}", index,
                static_cast<int>(instruction.op));
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const size_t operand = instruction.operands[i];
    if (i < static_cast<size_t>(info->operands) ? operand >= registers : operand != 0)
      return fail(ErrorCode::invalid_argument,
                  "fusion program: operand {} of instruction {} ({}) is register {}; {} registers are defined there", i,
                  index, info->name, operand, registers);
  }
  for (size_t i = static_cast<size_t>(info->immediates); i < instruction.immediates.size(); ++i)
    if (instruction.immediates[i] != 0)
      return fail(ErrorCode::invalid_argument,
                  "fusion program: instruction {} ({}) takes {} immediates, but more are set", index, info->name,
                  info->immediates);
  return {};
}

// Reads the text form, one token after the other.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_spaces();
    return position_ == text_.size();
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }
  std::string_view word() {
    skip_spaces();
    const size_t begin = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_'))
      ++position_;
    return text_.substr(begin, position_ - begin);
  }
  template <class T>
  std::optional<T> number() {
    skip_spaces();
    T value{};
    const auto [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    position_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  std::optional<uint16_t> reg() { return take("r") ? number<uint16_t>() : std::nullopt; }

  tl::unexpected<Error> expected(std::string_view what) const {
    return fail(ErrorCode::text_syntax, "fusion program, column {}: expected {}", position_ + 1, what);
  }

 private:
  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  std::string_view text_;
  size_t position_ = 0;
};

Result<Instruction> parse_instruction(Reader& reader) {
  const OpcodeInfo* info = opcode_named(reader.word());
  if (!info) return reader.expected("the name of an instruction");
  Instruction instruction{info->op, {}, {}};
  for (int i = 0; i < info->operands; ++i) {
    const std::optional<uint16_t> operand = reader.reg();
    if (!operand) return reader.expected("a register");
    instruction.operands[static_cast<size_t>(i)] = *operand;
  }
  for (int i = 0; i < info->immediates; ++i) {
    const std::optional<float> value = reader.number<float>();
    if (!value) return reader.expected("a number");
    instruction.immediates[static_cast<size_t>(i)] = *value;
  }
  return instruction;
}

// The value in double precision; the caller rounds it, once, to f32.
double evaluate_instruction(const Instruction& instruction, double a, double b, double c) {
  using real = double;
  const double x = instruction.immediates[0], y = instruction.immediates[1];
  switch (instruction.op) {
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) \
  case Opcode::name:                                                   \
    return formula;
#include "base/scalars.def"
  }
  return 0;
}

}  // namespace

const OpcodeInfo* opcode_info(int64_t number) {
  for (const OpcodeInfo& info : kOpcodes)
    if (static_cast<int>(info.op) == number) return &info;
  return nullptr;
}

bool is_activation(Opcode op) {
  switch (op) {
#define LATHE_ACTIVATION(name, parameters, formula) case Opcode::name:
#include "base/scalars.def"
    return true;
    default:
      return false;
  }
}

Result<> validate(const Program& program) {
  if (program.num_inputs > kMaxProgramInputs || program.code.size() > static_cast<size_t>(kMaxProgramCode))
    return fail(ErrorCode::invalid_argument,
                "fusion program: {} inputs and {} instructions; at most {} and {} are allowed", program.num_inputs,
                program.code.size(), kMaxProgramInputs, kMaxProgramCode);
  if (program.outputs.empty() || program.outputs.size() > static_cast<size_t>(kMaxProgramOutputs))
    return fail(ErrorCode::invalid_argument, "fusion program: {} outputs; 1 to {} are allowed", program.outputs.size(),
                kMaxProgramOutputs);
  for (size_t i = 0; i < program.code.size(); ++i)
    LATHE_TRY(validate_instruction(program.code[i], i, program.num_inputs + i));
  const size_t registers = program.num_inputs + program.code.size();
  for (const uint16_t output : program.outputs)
    if (output >= registers)
      return fail(ErrorCode::invalid_argument, "fusion program: output register {} is not defined ({} registers are)",
                  output, registers);
  return {};
}

std::string to_text(const Program& program) {
  std::string text = fmt::format("in={}; ", program.num_inputs);
  size_t target = program.num_inputs;
  for (const Instruction& instruction : program.code) {
    const OpcodeInfo* info = opcode_info(static_cast<int>(instruction.op));
    if (!info) return text + "unknown instruction";
    text += fmt::format("r{}={}", target++, info->name);
    for (int i = 0; i < info->operands; ++i) text += fmt::format(" r{}", instruction.operands[static_cast<size_t>(i)]);
    for (int i = 0; i < info->immediates; ++i)
      text += fmt::format(" {}", instruction.immediates[static_cast<size_t>(i)]);
    text += "; ";
  }
  text += "out";
  for (const uint16_t output : program.outputs) text += fmt::format(" r{}", output);
  return text;
}

Result<Program> parse_program(std::string_view text) {
  Reader reader(text);
  Program program;
  if (!reader.take("in=")) return reader.expected("in=<number of inputs>");
  const std::optional<uint16_t> inputs = reader.number<uint16_t>();
  if (!inputs || !reader.take(";")) return reader.expected("a number of inputs and ';'");
  program.num_inputs = *inputs;
  while (!reader.take("out")) {
    const std::optional<uint16_t> target = reader.reg();
    if (!target || *target != program.num_inputs + program.code.size())
      return reader.expected(fmt::format("r{} or out", program.num_inputs + program.code.size()));
    if (!reader.take("=")) return reader.expected("'='");
    LATHE_ASSIGN(const Instruction instruction, parse_instruction(reader));
    program.code.push_back(instruction);
    if (!reader.take(";")) return reader.expected("';'");
  }
  while (!reader.at_end()) {
    const std::optional<uint16_t> output = reader.reg();
    if (!output) return reader.expected("a register");
    program.outputs.push_back(*output);
  }
  LATHE_TRY(validate(program));
  return program;
}

void evaluate(const Program& program, std::span<const float> inputs, std::span<float> outputs) {
  float registers[kMaxProgramInputs + kMaxProgramCode] = {};
  std::copy_n(inputs.begin(), program.num_inputs, registers);
  float* target = registers + program.num_inputs;
  for (const Instruction& instruction : program.code) {
    const auto [a, b, c] = instruction.operands;
    *target++ = static_cast<float>(evaluate_instruction(instruction, registers[a], registers[b], registers[c]));
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) outputs[i] = registers[program.outputs[i]];
}

}  // namespace lathe
