// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_epilogue.h"

#include <algorithm>
#include <cmath>

namespace lathe::cpu::gemm {

bool is_exact(const Rounding& rounding) {
  constexpr float kMost = 1 << 16;
  for (const float level : {rounding.zero, rounding.low, rounding.high})
    if (!(std::abs(level) <= kMost) || level != std::nearbyint(level)) return false;
  return std::isnormal(rounding.scale) && std::isnormal(1 / rounding.scale) && rounding.scale > 0 &&
         std::isfinite(2 * kMost * rounding.scale) && rounding.low <= rounding.high;
}

namespace {

tl::unexpected<Error> refuse(std::string_view reason) {
  return fail(ErrorCode::plan_malformed, "epilogue of an integer product: {}; build the plan again", reason);
}

// A program that loses instructions at its ends. Registers keep their numbers until finish().
class Cut {
 public:
  explicit Cut(const Program& program) : program_(program), removed_(program.code.size()) {
    for (size_t i = 0; i < program.code.size() + program.num_inputs; ++i) stands_for_.push_back(static_cast<int>(i));
  }

  int inputs() const { return program_.num_inputs; }
  int result() const { return end_ ? stands_for_[*end_] : stands_for_[program_.outputs[0]]; }
  // The only instruction that reads the register, or nothing.
  std::optional<size_t> only_reader(int reg) const {
    std::optional<size_t> found;
    if (result() == reg) return found;
    for (size_t i = 0; i < program_.code.size(); ++i) {
      if (removed_[i] || !reads(i, reg)) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }
  const Instruction& at(size_t i) const { return program_.code[i]; }
  int operand(size_t i, int which) const { return stands_for_[program_.code[i].operands[which]]; }
  // The instruction that gives the register.
  const Instruction* maker(int reg) const { return reg < inputs() ? nullptr : &program_.code[reg - inputs()]; }
  // What read the instruction's result reads that register.
  void remove(size_t i, int instead) {
    removed_[i] = true;
    for (int& reg : stands_for_)
      if (reg == inputs() + static_cast<int>(i)) reg = instead;
  }
  // The program's result is what the instruction, which made it, read.
  void finish_at(size_t i) {
    end_ = operand(i, 0);
    removed_[i] = true;
  }
  Program finish() const {
    Program program{program_.num_inputs, {}, {}};
    std::vector<int> now(stands_for_.size());
    for (int i = 0; i < inputs(); ++i) now[i] = i;
    for (size_t i = 0; i < program_.code.size(); ++i) {
      if (removed_[i]) continue;
      Instruction instruction = program_.code[i];
      for (int o = 0; o < opcode_info(static_cast<int>(instruction.op))->operands; ++o)
        instruction.operands[o] = static_cast<uint16_t>(now[operand(i, o)]);
      now[inputs() + i] = inputs() + static_cast<int>(program.code.size());
      program.code.push_back(instruction);
    }
    program.outputs = {static_cast<uint16_t>(now[result()])};
    return program;
  }

 private:
  bool reads(size_t i, int reg) const {
    for (int o = 0; o < opcode_info(static_cast<int>(program_.code[i].op))->operands; ++o)
      if (operand(i, o) == reg) return true;
    return false;
  }

  const Program& program_;
  std::vector<bool> removed_;
  std::vector<int> stands_for_;
  std::optional<int> end_;
};

bool is_product(const Instruction& instruction) {
  return instruction.op == Opcode::affine && instruction.immediates[1] == 0;
}
bool is_sum(const Instruction& instruction) {
  return instruction.op == Opcode::affine && instruction.immediates[0] == 1;
}

// The extra operand that the instruction combines with the register, or -1.
int other_operand(const Cut& cut, size_t i, int reg) {
  const int a = cut.operand(i, 0), b = cut.operand(i, 1), other = a == reg ? b : a;
  return other != reg && other >= 1 && other < cut.inputs() ? other - 1 : -1;
}

// The extra operand of i32 that nothing but the instruction reads, as its operand of that number, or -1.
int integer_operand(const Cut& cut, const IntegerProgram& result, size_t i, int which) {
  const int reg = cut.operand(i, which);
  const bool fits = reg >= 1 && reg < cut.inputs() && result.operand_types[reg - 1] == DType::i32;
  return fits && cut.only_reader(reg) == i ? reg - 1 : -1;
}

// term, or term * factor, which instruction `reader` alone reads, as its operand of that number.
bool take_term(Cut& cut, IntegerProgram& result, size_t reader, int which) {
  result.term_operand = integer_operand(cut, result, reader, which);
  if (result.term_operand >= 0) return true;
  const int reg = cut.operand(reader, which);
  if (!cut.maker(reg) || cut.only_reader(reg) != reader) return false;
  const auto i = static_cast<size_t>(reg - cut.inputs());
  const int term = integer_operand(cut, result, i, 0);
  if (term < 0) return false;
  if (cut.at(i).op == Opcode::mul) {
    result.factor_operand = integer_operand(cut, result, i, 1);
    if (result.factor_operand < 0) return false;
  } else {
    constexpr float kMostFactor = 1 << 16;
    const float factor = cut.at(i).immediates[0];
    if (!is_product(cut.at(i)) || factor != std::nearbyint(factor) || !(std::abs(factor) <= kMostFactor)) return false;
    result.factor = static_cast<int32_t>(factor);
  }
  result.term_operand = term;
  cut.remove(i, reg);
  return true;
}

// The term, or its sum with numbers of columns, that instruction `reader` subtracts from the sums.
bool take_zero(Cut& cut, IntegerProgram& result, size_t reader) {
  if (take_term(cut, result, reader, 1)) return true;
  const int reg = cut.operand(reader, 1);
  const Instruction* sum = cut.maker(reg);
  if (!sum || sum->op != Opcode::add || cut.only_reader(reg) != reader) return false;
  const auto i = static_cast<size_t>(reg - cut.inputs());
  const int zero = integer_operand(cut, result, i, 1);
  if (zero < 0 || !take_term(cut, result, i, 0)) return false;
  result.zero_operand = zero;
  cut.remove(i, reg);
  return true;
}

// (sums - zero) * scale
void take_start(Cut& cut, IntegerProgram& result) {
  std::optional<size_t> i = cut.only_reader(0);
  if (i && cut.at(*i).op == Opcode::sub && cut.operand(*i, 0) == 0) {
    if (!take_zero(cut, result, *i)) return;
    cut.remove(*i, 0);
    i = cut.only_reader(0);
  }
  if (!i) return;
  if (is_product(cut.at(*i))) {
    result.scale = cut.at(*i).immediates[0];
    cut.remove(*i, 0);
  } else if (cut.at(*i).op == Opcode::mul) {
    const int other = other_operand(cut, *i, 0);
    if (other < 0 || result.operand_types[other] != DType::f32) return;
    result.scale_operand = other;
    cut.remove(*i, 0);
  }
}

// (level - zero) * scale
void take_levels(Cut& cut, int operand, IntegerProgram::Levels& levels) {
  const int reg = 1 + operand;
  std::optional<size_t> i = cut.only_reader(reg);
  if (i && is_sum(cut.at(*i))) {
    levels.zero = -cut.at(*i).immediates[1];
    cut.remove(*i, reg);
    i = cut.only_reader(reg);
  }
  if (!i || !is_product(cut.at(*i))) return;
  levels.scale = cut.at(*i).immediates[0];
  cut.remove(*i, reg);
}

// The instruction that gives the program's result, when nothing else reads it and it is of that kind.
std::optional<size_t> last_of(const Cut& cut, Opcode op) {
  const int reg = cut.result();
  const Instruction* maker = cut.maker(reg);
  if (!maker || maker->op != op) return std::nullopt;
  return static_cast<size_t>(reg - cut.inputs());
}

// clip(round(x / scale) + zero, low, high) at the end of a program.
bool take_rounding(Cut& cut, Rounding& rounding) {
  std::optional<size_t> i = last_of(cut, Opcode::clip);
  if (!i) return false;
  rounding.low = cut.at(*i).immediates[0];
  rounding.high = cut.at(*i).immediates[1];
  cut.finish_at(*i);
  i = last_of(cut, Opcode::affine);
  if (i && is_sum(cut.at(*i))) {
    rounding.zero = cut.at(*i).immediates[1];
    cut.finish_at(*i);
  }
  i = last_of(cut, Opcode::round);
  if (!i) return false;
  cut.finish_at(*i);
  if ((i = last_of(cut, Opcode::affine)) && is_product(cut.at(*i))) {
    rounding.scale = 1 / cut.at(*i).immediates[0];
  } else if ((i = last_of(cut, Opcode::div))) {
    const Instruction* divisor = cut.maker(cut.operand(*i, 1));
    if (!divisor || divisor->op != Opcode::constant) return false;
    rounding.scale = divisor->immediates[0];
  } else {
    return false;
  }
  cut.finish_at(*i);
  return is_exact(rounding);
}

}  // namespace

Result<IntegerProgram> compile_integer_epilogue(const Program* program, const IntegerTypes& types) {
  const auto& [to, operand_types] = types;
  for (const DType type : operand_types)
    if (type != DType::f32 && type != DType::i32 && !is_byte_integer(type)) return refuse("a tensor has another type");
  if (operand_types.size() >= kMaxProgramInputs) return refuse("it has too many operands");
  const Program identity{static_cast<uint16_t>(1 + operand_types.size()), {}, {0}};
  if (!program) program = &identity;
  if (program->outputs.size() != 1 || program->num_inputs != 1 + operand_types.size())
    return refuse("it has other operands than the step");
  IntegerProgram result;
  result.operand_types = operand_types;
  result.levels.resize(operand_types.size());
  result.to = to;
  Cut cut(*program);
  if (is_byte_integer(to) && !take_rounding(cut, result.rounding))
    return refuse("a result of 8 bits is not rounded to levels");
  if (to == DType::i32 && !program->is_identity()) return refuse("sums that stay integers have no program");
  if (!is_byte_integer(to) && to != DType::f32 && to != DType::i32) return refuse("its result has another type");
  take_start(cut, result);
  if (std::count_if(operand_types.begin(), operand_types.end(), is_byte_integer) > kMaxSmallOperands)
    return refuse("too many operands of 8 bits");
  for (size_t i = 0; i < operand_types.size(); ++i) {
    const auto operand = static_cast<int>(i);
    const bool is_off_sums =
        operand == result.zero_operand || operand == result.term_operand || operand == result.factor_operand;
    if (operand_types[i] != DType::f32 && !is_byte_integer(operand_types[i]) && !is_off_sums)
      return refuse("an operand has another type");
    if (is_byte_integer(operand_types[i])) take_levels(cut, static_cast<int>(i), result.levels[i]);
  }
  const Program middle = cut.finish();
  LATHE_ASSIGN(result.middle, compile_epilogue(&middle));
  fuse_sum(result);
  return result;
}

}  // namespace lathe::cpu::gemm
