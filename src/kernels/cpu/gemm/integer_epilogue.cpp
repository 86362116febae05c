// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_epilogue.h"

#include <algorithm>
#include <cmath>

namespace lathe::cpu::gemm {
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

// Whether values that are clamped to what the levels are worth become these levels, and no others.
bool is_exact(const Rounding& rounding) {
  constexpr float kMost = 1 << 16;
  for (const float level : {rounding.zero, rounding.low, rounding.high})
    if (!(std::abs(level) <= kMost) || level != std::nearbyint(level)) return false;
  return std::isnormal(rounding.scale) && std::isnormal(1 / rounding.scale) && rounding.scale > 0 &&
         std::isfinite(2 * kMost * rounding.scale) && rounding.low <= rounding.high;
}

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

// (sums - zero) * scale
void take_start(Cut& cut, IntegerProgram& result) {
  std::optional<size_t> i = cut.only_reader(0);
  if (i && cut.at(*i).op == Opcode::sub && cut.operand(*i, 0) == 0) {
    const int other = other_operand(cut, *i, 0);
    if (other < 0 || result.operand_types[other] != DType::i32 || cut.only_reader(1 + other) != i) return;
    result.zero_operand = other;
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
    const bool is_zero = static_cast<int>(i) == result.zero_operand;
    if (operand_types[i] != DType::f32 && !is_byte_integer(operand_types[i]) && !is_zero)
      return refuse("an operand has another type");
    if (is_byte_integer(operand_types[i])) take_levels(cut, static_cast<int>(i), result.levels[i]);
  }
  const Program middle = cut.finish();
  LATHE_ASSIGN(result.middle, compile_epilogue(&middle));
  return result;
}

Result<> check_integer_epilogue(const IntegerProgram& program, std::span<const TensorArg> operands,
                                const TensorArg& output, int column_dim) {
  if (operands.size() != program.operand_types.size())
    return fail(ErrorCode::plan_malformed, "the epilogue takes {} operands, the step has {}; build the plan again",
                program.operand_types.size(), operands.size());
  if (output.dtype != program.to) return refuse("its result has another type");
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorArg& operand = operands[i];
    const bool along_columns =
        static_cast<int>(i) == program.zero_operand || static_cast<int>(i) == program.scale_operand;
    bool fits = operand.dtype == program.operand_types[i] && operand.rank == output.rank;
    for (int d = 0; fits && d < output.rank; ++d)
      fits = (operand.dims[d] == 1 || operand.dims[d] == output.dims[d]) &&
             (!along_columns || d == column_dim || broadcast_stride(operand, d) == 0);
    if (!fits)
      return fail(ErrorCode::shape_mismatch, "epilogue operand {} is not {} or does not broadcast to the output", i,
                  name_of(program.operand_types[i]));
  }
  return {};
}

namespace {

int64_t padded(int64_t columns) { return (columns + kMaxTileColumns + 15) / 16 * 16; }

template <class T>
T value_at(const TensorArg& operand, int dim, int64_t column) {
  return operand.as<T>()[column * broadcast_stride(operand, dim)];
}

// What an operand has for each column.
template <class T>
void copy_columns(const TensorArg& operand, int dim, int64_t columns, T* to) {
  const T* from = operand.as<T>();
  const int64_t stride = broadcast_stride(operand, dim);
  if (stride == 1)
    std::copy_n(from, columns, to);
  else
    for (int64_t c = 0; c < columns; ++c) to[c] = from[c * stride];
}

bool varies_by_row(const TensorArg& operand, const TensorArg& output, int column_dim) {
  for (int d = 0; d < output.rank; ++d)
    if (d != column_dim && broadcast_stride(operand, d) != 0) return true;
  return false;
}

// An operand of 8 bits that all rows share, as floats.
TensorArg dequantized(const TensorArg& operand, const IntegerProgram::Levels& levels, int dim, float* to) {
  for (int64_t c = 0; c < operand.dims[dim]; ++c) {
    const int level =
        operand.dtype == DType::i8 ? value_at<int8_t>(operand, dim, c) : value_at<uint8_t>(operand, dim, c);
    to[c] = (static_cast<float>(level) - levels.zero) * levels.scale;
  }
  TensorArg floats = operand;
  floats.data = to;
  floats.dtype = DType::f32;
  floats.strides[dim] = 1;
  return floats;
}

// What becomes the lowest level, and the highest, when it is divided and rounded. Less and more becomes no other.
Bounds bounds_of(const Rounding& rounding) {
  const auto value_of = [&](float level) { return (level - rounding.zero) * rounding.scale; };
  return {value_of(rounding.low), value_of(rounding.high)};
}

Bounds within(const Bounds& inner, const Bounds& outer) {
  return {std::max(inner.low, outer.low), std::max(std::min(inner.high, outer.high), outer.low)};
}

void bind_direct(IntegerEpilogue& bound) {
  const BoundEpilogue& middle = bound.middle;
  bound.bounds = {-HUGE_VALF, HUGE_VALF};
  bound.direct = middle.linear;
  bound.residual = middle.residual;
  if (middle.fused && middle.has_act && middle.act.op == StepOp::levels && middle.residual < 0) {
    const Rounding rounding{middle.act.x, 0, middle.act.z, middle.act.w};
    bound.direct = bound.has_between = is_exact(rounding);
    bound.between = {rounding, bounds_of(rounding), middle.act.y};
    bound.residual = middle.late_residual;
  }
  if (bound.direct) bound.bounds = {middle.low, middle.high};
}

// What finish_chain() runs.
bool is_chain(const IntegerEpilogue& bound) {
  const auto runs = [&](const EpilogueStep& step) {
    if (step.op == StepOp::add) return bound.middle.operands[step.operand].column_stride == 1;
    if (step.op == StepOp::levels) return is_exact({step.x, 0, step.z, step.w});
    return step.op == StepOp::affine || step.op == StepOp::relu || step.op == StepOp::clip;
  };
  const Epilogue& epilogue = *bound.middle.epilogue;
  return epilogue.is_chain && std::ranges::all_of(epilogue.chain, runs);
}

// Whether a number of levels, times any factor that rounding errors are, is converted to i32.
bool is_convertible(float levels) { return levels < 0x1.fp30f; }

// What a residual and levels between add to a level, and the most that this is; see FoldedScales.
float fold_operands(const IntegerEpilogue& bound, FoldedScales& folded) {
  const float factor = 1 / bound.program->rounding.scale;
  float most = 0;
  if (bound.residual >= 0) {
    const IntegerProgram::Levels& levels = bound.program->levels[static_cast<size_t>(bound.residual)];
    folded.residual_scale = levels.scale * factor;
    folded.shift = -levels.zero * folded.residual_scale;
    most = std::abs(folded.shift) + 256 * std::abs(folded.residual_scale);
  }
  if (!bound.has_between) return most;
  folded.low = bound.between.rounding.low;
  folded.high = bound.between.rounding.high;
  folded.step = bound.between.step * factor;
  most += std::max(std::abs(folded.low), std::abs(folded.high)) * std::abs(folded.step);
  if (bound.residual >= 0 && is_byte_integer(bound.program->operand_types[static_cast<size_t>(bound.residual)])) {
    const IntegerProgram::Levels& levels = bound.program->levels[static_cast<size_t>(bound.residual)];
    folded.residual_scale = levels.scale;
    folded.residual_zero = levels.zero;
    folded.step = bound.between.step;
    folded.quotient = bound.program->rounding;
  }
  return most;
}

// How levels become bytes.
void fold_bytes(const IntegerEpilogue& bound, FoldedScales& folded) {
  const Rounding& rounding = bound.program->rounding;
  const bool is_signed = bound.program->to == DType::i8;
  const auto byte_of = [&](float value) {
    const float level = std::nearbyint(value / rounding.scale) + rounding.zero;
    return static_cast<int32_t>(std::clamp(level, rounding.low, rounding.high)) + (is_signed ? 128 : 0);
  };
  folded.zero = static_cast<int32_t>(rounding.zero) + (is_signed ? 128 : 0);
  folded.flip = is_signed ? static_cast<int32_t>(0x80808080u) : 0;
  folded.least = byte_of(bound.bounds.low);
  folded.most = byte_of(bound.bounds.high);
}

// `scale` becomes the folded one, where there is one. It has room for more columns than there are, as `offset` has.
void fold_scales(IntegerEpilogue& bound, int64_t columns, std::span<float> scale, float* offset) {
  FoldedScales folded;
  const float most = fold_operands(bound, folded);
  const float factor = 1 / (bound.has_between ? bound.between.rounding : bound.program->rounding).scale;
  const float shift = bound.has_between ? 0 : folded.shift;
  bool fits = is_convertible(most) && bound.bounds.low <= bound.bounds.high;
  for (int64_t c = 0; c < columns && fits; ++c) {
    const float bias = bound.middle.bias ? bound.middle.bias[c] * factor : 0;
    offset[c] = bias + shift;
    fits = is_convertible(std::abs(scale[static_cast<size_t>(c)] * factor) * 0x1p31f + std::abs(bias) + most);
  }
  if (!fits) return;
  std::fill(offset + columns, offset + scale.size(), 0.0f);
  for (float& value : scale) value *= factor;
  folded.offset = offset;
  fold_bytes(bound, folded);
  bound.folded = folded;
}

}  // namespace

size_t integer_scratch_bytes(int64_t columns, size_t operands) {
  return static_cast<size_t>(padded(columns)) * (3 + operands) * sizeof(float);
}

IntegerEpilogue bind_integer_epilogue(const IntegerProgram& program, std::span<const TensorArg> operands,
                                      const TensorArg& output, int column_dim, const int32_t* flipped,
                                      std::byte* scratch) {
  IntegerEpilogue bound;
  bound.program = &program;
  bound.flip = flipped ? static_cast<int32_t>(0x80808080u) : 0;
  const int64_t columns = output.dims[column_dim], room = padded(columns);
  auto* zero = reinterpret_cast<int32_t*>(scratch);
  auto* scale = reinterpret_cast<float*>(scratch) + room;
  const auto operand = [&](int i) -> const TensorArg& { return operands[static_cast<size_t>(i)]; };
  std::fill_n(zero, room, 0);
  if (program.zero_operand >= 0) copy_columns(operand(program.zero_operand), column_dim, columns, zero);
  // Sums wrap as those of the products do.
  for (int64_t c = 0; flipped && c < columns; ++c)
    zero[c] = static_cast<int32_t>(static_cast<uint32_t>(zero[c]) + static_cast<uint32_t>(flipped[c]));
  std::fill_n(scale, columns, program.scale);
  if (program.scale_operand >= 0) copy_columns(operand(program.scale_operand), column_dim, columns, scale);
  std::fill_n(scale + columns, room - columns, 0.0f);
  TensorArg floats[kMaxEpilogueOperands];
  std::copy(operands.begin(), operands.end(), floats);
  for (size_t i = 0; i < operands.size(); ++i)
    if (is_byte_integer(operands[i].dtype) && !varies_by_row(operands[i], output, column_dim))
      floats[i] = dequantized(operands[i], program.levels[i], column_dim, scale + room * static_cast<int64_t>(i + 2));
  bound.middle = bind_epilogue(program.middle, {floats, operands.size()}, output, column_dim);
  for (size_t i = 0; i < operands.size(); ++i) bound.dequantizes |= is_byte_integer(floats[i].dtype);
  bound.zero = zero;
  bound.scale = scale;
  bound.raw = program.to == DType::i32;
  bound.rounds = is_byte_integer(program.to);
  bind_direct(bound);
  bound.chained = !bound.direct && is_chain(bound);
  if (!bound.rounds) return bound;
  bound.bounds = within(bound.bounds, bounds_of(program.rounding));
  if (bound.direct) fold_scales(bound, columns, {scale, static_cast<size_t>(room)}, scale + room);
  return bound;
}

}  // namespace lathe::cpu::gemm
