// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/levels.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/cuda/level_quotient.h"
#include "ops/quantization.h"

namespace lathe::cuda {
namespace {

// Takes instructions from the end of a program, the last one first, as long as each is the first operand of the one
// behind it.
class End {
 public:
  explicit End(const Program& program) : program_(&program), left_(program.code.size()) {}

  // The last instruction that is left, if it is of that kind and the one taken before reads it; else null.
  const Instruction* take(Opcode op) {
    const Instruction* last = maker(reg_.value_or(program_->num_inputs + left_ - 1));
    if (left_ == 0 || last != &program_->code[left_ - 1] || last->op != op) return nullptr;
    reg_ = last->operands[0];
    --left_;
    return last;
  }
  // Null for what an input holds.
  const Instruction* maker(size_t reg) const {
    return reg < program_->num_inputs ? nullptr : &program_->code[reg - program_->num_inputs];
  }
  size_t reg() const { return *reg_; }
  size_t left() const { return left_; }

 private:
  const Program* program_;
  size_t left_;
  std::optional<size_t> reg_;  // what the instructions that are taken read first
};

bool is_whole(float value) { return value == std::nearbyint(value); }

// Takes a division by a positive constant, which it returns; nothing is taken if the end is something else.
std::optional<float> take_quotient(End& end) {
  End before = end;
  const Instruction* quotient = before.take(Opcode::div);
  const Instruction* divisor = quotient ? before.maker(quotient->operands[1]) : nullptr;
  if (!divisor || divisor->op != Opcode::constant) return std::nullopt;
  const float scale = divisor->immediates[0];
  if (!(scale > 0) || !std::isnormal(scale) || !std::isnormal(1 / scale)) return std::nullopt;
  end = before;
  return scale;
}

// A relu or clip that makes x narrows the bounds, and x becomes what it reads.
void take_bounds(const End& end, Levels& levels) {
  const Instruction* maker = end.maker(levels.x);
  if (!maker || (maker->op != Opcode::relu && maker->op != Opcode::clip)) return;
  const float low = maker->op == Opcode::relu ? 0 : maker->immediates[0];
  const float high = maker->op == Opcode::relu ? HUGE_VALF : maker->immediates[1];
  if (!(low <= high) || low > levels.high || high < levels.low) return;
  levels.x = maker->operands[0];
  levels.low = std::max(levels.low, low), levels.high = std::min(levels.high, high);
}

// The levels of a program from whose end the rounding is taken; `levels` holds their bounds, before the scale.
std::optional<Levels> levels_before(End end, Levels levels) {
  levels.scale = take_quotient(end);
  if (levels.scale) {
    levels.low *= *levels.scale, levels.high *= *levels.scale;
    if (levels.least) *levels.least *= *levels.scale, *levels.largest *= *levels.scale;
    if (!std::isfinite(levels.low) || !std::isfinite(levels.high)) return std::nullopt;
  }
  levels.x = end.reg();
  levels.instructions = end.left();
  take_bounds(end, levels);
  return levels;
}

std::optional<Levels> integers_of(const Program& program, DType output) {
  End end(program);
  const Instruction* clip = end.take(Opcode::clip);
  if (!clip) return std::nullopt;
  const IntegerRange range = *quantized_range(output);
  const float low = clip->immediates[0], high = clip->immediates[1];
  if (!is_whole(low) || !is_whole(high) || !(range.low <= low && low <= high && high <= range.high))
    return std::nullopt;
  Levels levels;
  if (const Instruction* shift = end.take(Opcode::affine)) {
    constexpr float kMost = 512;
    const float zero = shift->immediates[1];
    if (shift->immediates[0] != 1 || !is_whole(zero) || std::abs(zero) > kMost) return std::nullopt;
    levels.zero = static_cast<int>(zero);
  }
  if (!end.take(Opcode::round)) return std::nullopt;
  levels.low = low - static_cast<float>(levels.zero), levels.high = high - static_cast<float>(levels.zero);
  if (levels.zero == 0) levels.least = static_cast<float>(range.low), levels.largest = static_cast<float>(range.high);
  levels.most = std::max(std::abs(levels.low), std::abs(levels.high));
  return levels_before(end, levels);
}

// How exact x has to be, where it is a GELU and the bounds of levels, all that is made of it, are those of the type.
// `least`: the type's least positive number.
std::optional<Exactness> gelu_of(const Program& program, const Levels& levels, float largest, float least) {
  constexpr float kLeast = 0x1p-18f;  // of the results: what math::gelu_erf_8 leaves out of them does not show
  const float scale = levels.scale.value_or(1);
  const bool ends_in_gelu = program.outputs.size() == 1 && levels.x >= program.num_inputs &&
                            program.code[levels.x - program.num_inputs].op == Opcode::gelu_erf &&
                            levels.low == -largest * scale && levels.high == largest * scale &&
                            std::isfinite(1 / scale);
  if (!ends_in_gelu) return std::nullopt;
  return least * scale >= kLeast ? Exactness::float8 : Exactness::bits16;
}

std::optional<Levels> floats_of(const Program& program, Opcode rounding, float largest, float least) {
  End end(program);
  if (!end.take(rounding)) return std::nullopt;
  Levels wanted;
  wanted.low = -largest, wanted.high = largest;
  std::optional<Levels> levels = levels_before(end, wanted);
  if (levels) levels->gelu = gelu_of(program, *levels, largest, least);
  return levels;
}

std::optional<Levels> last_levels_of(const Program& program, DType output) {
  switch (output) {
    case DType::i8:
    case DType::u8:
      return integers_of(program, output);
    case DType::f8e4m3fn:
      return floats_of(program, Opcode::round_e4m3, 448, 0x1p-9f);
    case DType::f8e5m2:
      return floats_of(program, Opcode::round_e5m2, 57344, 0x1p-16f);
    default:
      return std::nullopt;
  }
}

// x as its bounds leave it. `any`: what is made of it next may be anything that the store bounds.
std::string bounded(const Levels& levels, bool any) {
  const bool low = !any || levels.low != levels.least, high = !any || levels.high != levels.largest;
  if (high) return fmt::format("math::within(r{}, {}, {})", levels.x, literal(levels.low), literal(levels.high));
  return low ? fmt::format("math::above(r{}, {})", levels.x, literal(levels.low)) : fmt::format("r{}", levels.x);
}

}  // namespace

std::optional<Levels> levels_of(const Program& program, DType output) {
  const size_t inputs = program.num_inputs;
  if (program.outputs.empty() || program.code.empty() || program.outputs.back() != inputs + program.code.size() - 1)
    return std::nullopt;
  std::optional<Levels> levels = last_levels_of(program, output);
  const auto is_left = [&](uint16_t reg) { return reg < inputs + levels->instructions; };
  const std::span<const uint16_t> others(program.outputs.begin(), program.outputs.end() - 1);
  return levels && std::ranges::all_of(others, is_left) ? levels : std::nullopt;
}

bool is_quantized(const Program& program, size_t result, DType dtype) {
  const size_t reg = program.outputs[result];
  if (reg < program.num_inputs || size_of(dtype) > 2) return false;
  const Instruction& last = program.code[reg - program.num_inputs];
  if (last.op != Opcode::clip) return false;
  const bool is_signed = class_of(dtype) == DTypeClass::signed_int;
  const auto values = static_cast<float>(int64_t{1} << (size_of(dtype) * 8));
  const float low = is_signed ? -values / 2 : 0, high = (is_signed ? values / 2 : values) - 1;
  return last.immediates[0] >= low && last.immediates[1] <= high;
}

std::string unrounded(const Levels& levels) {
  if (levels.gelu)
    return levels.scale ? fmt::format("r{} * {}", levels.x, literal(1 / *levels.scale)) : fmt::format("r{}", levels.x);
  if (!levels.scale) return bounded(levels, true);
  if (!levels.most)
    return fmt::format("math::quotient_within({}, {}, {})", bounded(levels, false), literal(*levels.scale),
                       literal(1 / *levels.scale));
  const LevelQuotient quotient(*levels.scale, *levels.most);
  return quotient.of(bounded(levels, quotient.divides_any()));
}

}  // namespace lathe::cuda
