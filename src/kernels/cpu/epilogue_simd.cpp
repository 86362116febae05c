// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/simd_scalars.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

// Calls use(f) with the activation f of a step: code that runs it in a loop is compiled once for each.
template <class Use>
LATHE_INLINE void with_activation(const EpilogueStep& step, Use&& use) {
  using real = float;
  const Vec x = broadcast(step.x), y = broadcast(step.y);
  if (step.op == StepOp::silu) return use([](Vec a) { return silu_quick(a); });
  switch (step.op) {
    case StepOp::levels: {
      const Vec low = broadcast(step.z), high = broadcast(step.w);
      return use([=](Vec a) { return min_or_second(high, max_or_second(low, round_even(a / x))) * y; });
    }
#define LATHE_ACTIVATION(name, parameters, formula) \
  case StepOp::name:                                \
    return use([=](Vec a) { return formula; });
#include "base/scalars.def"
    default:
      return;
  }
}

// f(x) on every vector of the tile. The columns past the end hold zero-padded weights' sums: harmless.
template <class F>
LATHE_INLINE void map_tile(float* sums, int64_t row_stride, int rows, int columns, F&& f) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; c += kLanes) {
      float* p = sums + r * row_stride + c;
      store(p, f(load(p)));
    }
}

// The usual form, one pass from the sums to the output.
template <class Act>
void finish_fused(const BoundEpilogue& bound, const TileRows& where, const float* sums, int64_t row_stride, int rows,
                  int64_t column, int columns, Act&& act) {
  const Vec low = broadcast(bound.low), high = broadcast(bound.high);
  const float* bias = bound.bias ? bound.bias + column : nullptr;
  for (int r = 0; r < rows; ++r) {
    const float* early = bound.residual >= 0 ? where.operand[bound.residual][r] + column : nullptr;
    const float* late = bound.late_residual >= 0 ? where.operand[bound.late_residual][r] + column : nullptr;
    float* out = where.out[r] + column;
    const float* row = sums + r * row_stride;
    int c = 0;
    for (; c + kLanes <= columns; c += kLanes) {
      Vec value = load(row + c);
      if (bias) value += load(bias + c);
      if (early) value += load(early + c);
      value = act(value);
      if (late) value += load(late + c);
      store(out + c, min_or_second(high, max_or_second(low, value)));
    }
    const int rest = columns - c;
    if (rest == 0) continue;
    Vec value = load(row + c);
    if (bias) value += load_tail(bias + c, rest);
    if (early) value += load_tail(early + c, rest);
    value = act(value);
    if (late) value += load_tail(late + c, rest);
    store_tail(out + c, rest, min_or_second(high, max_or_second(low, value)));
  }
}

template <class F>
void combine_tile(float* sums, int64_t row_stride, int rows, int columns, const EpilogueOperand& operand,
                  const float* const* operand_rows, int64_t column, F&& f) {
  for (int r = 0; r < rows; ++r) {
    const float* source = (operand.varies_by_row ? operand_rows[r] : operand.data) + column * operand.column_stride;
    float* row = sums + r * row_stride;
    if (operand.column_stride == 1) {
      int c = 0;
      for (; c + kLanes <= columns; c += kLanes) store(row + c, f(load(row + c), load(source + c)));
      if (c < columns) store(row + c, f(load(row + c), load_tail(source + c, columns - c)));
    } else if (operand.column_stride == 0) {
      const Vec value = broadcast(*source);
      for (int c = 0; c < columns; c += kLanes) store(row + c, f(load(row + c), value));
    } else {
      for (int c = 0; c < columns; ++c) {
        const Vec value = f(broadcast(row[c]), broadcast(source[c * operand.column_stride]));
        row[c] = value[0];
      }
    }
  }
}

void run_step(const EpilogueStep& step, const BoundEpilogue& bound, const TileRows& where, float* sums,
              int64_t row_stride, int rows, int64_t column, int columns) {
  auto combine = [&](auto&& f) {
    combine_tile(sums, row_stride, rows, columns, bound.operands[step.operand], where.operand[step.operand], column, f);
  };
  if (step.op == StepOp::add) return combine([](Vec a, Vec b) { return a + b; });
  if (step.op == StepOp::mul) return combine([](Vec a, Vec b) { return a * b; });
  with_activation(step, [&](auto&& act) { map_tile(sums, row_stride, rows, columns, act); });
}

void store_row(float* out, const float* sums, int columns) {
  int c = 0;
  for (; c + kLanes <= columns; c += kLanes) store(out + c, load(sums + c));
  if (c < columns) store_tail(out + c, columns - c, load(sums + c));
}

void run_program(const BoundEpilogue& bound, const TileRows& where, float* sums, int64_t row_stride, int rows,
                 int64_t column, int columns) {
  alignas(64) float scratch[kMaxProgramScratch / sizeof(float)];
  BlockInput inputs[kMaxProgramInputs];
  for (int r = 0; r < rows; ++r) {
    inputs[0] = {sums + r * row_stride, 0, 1};
    for (int i = 0; i < bound.count; ++i) {
      const EpilogueOperand& operand = bound.operands[i];
      const float* row = operand.varies_by_row ? where.operand[i][r] : operand.data;
      inputs[i + 1] = {row + column * operand.column_stride, 0, operand.column_stride};
    }
    const BlockOutput output{where.out[r] + column, 0};
    run_program_block(bound.epilogue->block, 1, columns, inputs, &output, scratch);
  }
}

}  // namespace

void finish_tile(const BoundEpilogue& bound, const TileRows& where, float* sums, int64_t row_stride, int rows,
                 int64_t column, int columns) {
  if (!bound.epilogue->is_chain) return run_program(bound, where, sums, row_stride, rows, column, columns);
  if (bound.fused && bound.has_act)
    return with_activation(
        bound.act, [&](auto&& act) { finish_fused(bound, where, sums, row_stride, rows, column, columns, act); });
  if (bound.fused) return finish_fused(bound, where, sums, row_stride, rows, column, columns, [](Vec a) { return a; });
  for (const EpilogueStep& step : bound.epilogue->chain)
    run_step(step, bound, where, sums, row_stride, rows, column, columns);
  for (int r = 0; r < rows; ++r) store_row(where.out[r] + column, sums + r * row_stride, columns);
}

}  // namespace lathe::cpu::LATHE_ISA
