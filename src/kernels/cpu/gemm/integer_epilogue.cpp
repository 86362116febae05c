// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_epilogue.h"

#include <algorithm>
#include <cmath>

namespace lathe::cpu::gemm {

Result<> check_integer_epilogue(const IntegerProgram& program, std::span<const TensorArg> operands,
                                const TensorArg& output, int column_dim, int first_shared) {
  if (operands.size() != program.operand_types.size())
    return fail(ErrorCode::plan_malformed, "the epilogue takes {} operands, the step has {}; build the plan again",
                program.operand_types.size(), operands.size());
  if (output.dtype != program.to)
    return fail(ErrorCode::plan_malformed, "the epilogue gives {}, the step {}; build the plan again",
                name_of(program.to), name_of(output.dtype));
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorArg& operand = operands[i];
    const bool along_columns = program.is_along_columns(static_cast<int>(i));
    const bool is_term = static_cast<int>(i) == program.term_operand;
    bool fits = operand.dtype == program.operand_types[i] && operand.rank == output.rank;
    for (int d = 0; fits && d < output.rank; ++d)
      fits = (operand.dims[d] == 1 || operand.dims[d] == output.dims[d]) &&
             (!along_columns || d == column_dim || d < first_shared || broadcast_stride(operand, d) == 0) &&
             (!is_term || d != column_dim || broadcast_stride(operand, d) <= 1);
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

// Wraps as sums of products do.
int32_t add_product(int32_t sum, int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

// What is taken off by rows. Where they all have the same it is part of the zero points.
void bind_term(IntegerEpilogue& bound, std::span<const TensorArg> operands, const TensorArg& output, int column_dim,
               int32_t* zero, int32_t* factors) {
  const IntegerProgram& program = *bound.program;
  if (program.term_operand < 0) return;
  const TensorArg& term = operands[static_cast<size_t>(program.term_operand)];
  const int64_t columns = output.dims[column_dim];
  std::fill_n(factors, columns, program.factor);
  if (program.factor_operand >= 0)
    copy_columns(operands[static_cast<size_t>(program.factor_operand)], column_dim, columns, factors);
  std::fill(factors + columns, factors + padded(columns), 0);
  if (varies_by_row(term, output, column_dim)) {
    bound.term = program.term_operand;
    bound.factors = factors;
    return;
  }
  for (int64_t c = 0; c < columns; ++c)
    zero[c] = add_product(zero[c], value_at<int32_t>(term, column_dim, c), factors[c]);
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

void divide(FoldedScales& folded, const IntegerProgram::Levels& residual, float step, const Rounding& rounding) {
  folded.divides = true;
  folded.quotient = rounding;
  folded.step = step;
  folded.residual_scale = residual.scale;
  folded.residual_zero = residual.zero;
}

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
  if (bound.residual < 0 || !is_byte_integer(bound.program->operand_types[static_cast<size_t>(bound.residual)]))
    return most;
  if (const FusedSum& sum = bound.program->sum; sum.operand == bound.residual) {
    folded.step = sum.step;
    folded.residual_scale = sum.residual_scale;
    folded.shift = sum.shift;
  } else {
    const IntegerProgram::Levels& levels = bound.program->levels[static_cast<size_t>(bound.residual)];
    divide(folded, levels, bound.between.step, bound.program->rounding);
  }
  return most;
}

// How levels of values within bounds become bytes.
void fold_bytes(const IntegerProgram& program, const Bounds& bounds, FoldedScales& folded) {
  const Rounding& rounding = program.rounding;
  const bool is_signed = program.to == DType::i8;
  const auto byte_of = [&](float value) {
    const float level = std::nearbyint(value / rounding.scale) + rounding.zero;
    return static_cast<int32_t>(std::clamp(level, rounding.low, rounding.high)) + (is_signed ? 128 : 0);
  };
  folded.zero = static_cast<int32_t>(rounding.zero) + (is_signed ? 128 : 0);
  folded.flip = is_signed ? static_cast<int32_t>(0x80808080u) : 0;
  folded.least = byte_of(bounds.low);
  folded.most = byte_of(bounds.high);
}

// `scale` becomes the folded one, where there is one. It has room for more columns than there are, as `offset` has.
void fold_scales(IntegerEpilogue& bound, int64_t columns, std::span<float> scale, float* offset) {
  FoldedScales folded;
  const float most = fold_operands(bound, folded);
  static const auto fold = LATHE_ISA_SELECT(fold_columns);
  const float factor = 1 / (bound.has_between ? bound.between.rounding : bound.program->rounding).scale;
  const float shift = bound.has_between ? 0 : folded.shift;
  if (!(most < kConvertible) || bound.bounds.low > bound.bounds.high ||
      !fold({scale.data(), bound.middle.bias, offset, columns, factor, shift, most}))
    return;
  std::fill(offset + columns, offset + scale.size(), 0.0f);
  folded.offset = offset;
  fold_bytes(*bound.program, bound.bounds, folded);
  bound.folded = folded;
}

// The numbers beside one.
float beside(float x, int steps) {
  for (; steps > 0; --steps) x = std::nextafter(x, HUGE_VALF);
  for (; steps < 0; ++steps) x = std::nextafter(x, -HUGE_VALF);
  return x;
}

}  // namespace

void fuse_sum(IntegerProgram& program) {
  const std::vector<EpilogueStep>& chain = program.middle.chain;
  const auto between = std::ranges::find(chain, StepOp::levels, &EpilogueStep::op);
  if (!is_byte_integer(program.to) || chain.end() - between < 2 || between[1].op != StepOp::add) return;
  const auto operand = static_cast<size_t>(between[1].operand);
  const IntegerProgram::Levels& residual = program.levels[operand];
  const float factor = 1 / program.rounding.scale;
  constexpr float kMostLevels = 256;
  const bool is_of_bytes = is_byte_integer(program.operand_types[operand]) &&
                           is_exact({between->x, 0, between->z, between->w}) && is_exact({1, residual.zero, 0, 0}) &&
                           between->w - between->z < kMostLevels;
  const float most = (std::max(std::abs(between->z), std::abs(between->w)) * std::abs(between->y) +
                      (kMostLevels + std::abs(residual.zero)) * std::abs(residual.scale)) *
                     factor;
  if (!is_of_bytes || !(most < kConvertible)) return;
  FoldedScales divided;
  divided.low = between->z;
  divided.high = between->w;
  divide(divided, residual, between->y, program.rounding);
  fold_bytes(program, bounds_of(program.rounding), divided);
  static const auto alike = LATHE_ISA_SELECT(gives_levels_of);
  FoldedScales fused = divided;
  // Of 65,536 sums one or two lie so near to the middle between two levels that roundings decide. Other roundings are
  // those of factors next to the true ones.
  constexpr int kOrder[] = {0, 1, -1, 2, -2, 3, -3};
  for (const int i : kOrder)
    for (const int j : kOrder) {
      fused.step = beside(between->y * factor, i);
      fused.residual_scale = beside(residual.scale * factor, j);
      fused.shift = -residual.zero * fused.residual_scale;
      if (!alike(fused, divided, program.operand_types[operand] == DType::i8)) continue;
      program.sum = {between[1].operand, fused.step, fused.residual_scale, fused.shift};
      return;
    }
}

size_t integer_scratch_bytes(int64_t columns, size_t operands) {
  return static_cast<size_t>(padded(columns)) * (5 + operands) * sizeof(float);
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
  const auto slot = [&](size_t i) { return reinterpret_cast<int32_t*>(scratch) + room * static_cast<int64_t>(i); };
  bind_term(bound, operands, output, column_dim, zero, slot(4 + operands.size()));
  if (std::any_of(zero, zero + columns, [](int32_t z) { return z != 0; })) {
    int32_t* start = slot(3 + operands.size());
    std::transform(zero, zero + room, start,
                   [](int32_t z) { return static_cast<int32_t>(0 - static_cast<uint32_t>(z)); });
    bound.start = start;
  }
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
