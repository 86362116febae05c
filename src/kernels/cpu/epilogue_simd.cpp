// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd_math.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

// f(x) on every vector of the tile. The columns past the end hold zero-padded weights' sums: harmless.
template <class F>
LATHE_INLINE void map_tile(float* sums, int64_t row_stride, int rows, int columns, F&& f) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; c += kLanes) {
      float* p = sums + r * row_stride + c;
      store(p, f(load(p)));
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
  const Vec x = broadcast(step.x), y = broadcast(step.y), none = zero(), one = broadcast(1.0f);
  auto combine = [&](auto&& f) {
    combine_tile(sums, row_stride, rows, columns, bound.operands[step.operand], where.operand[step.operand], column, f);
  };
  auto map = [&](auto&& f) { map_tile(sums, row_stride, rows, columns, f); };
  switch (step.op) {
    case Opcode::add:
      return combine([](Vec a, Vec b) { return a + b; });
    case Opcode::mul:
      return combine([](Vec a, Vec b) { return a * b; });
    case Opcode::relu:
      return map([=](Vec a) { return max_or_second(none, a); });
    case Opcode::clip:
      return map([=](Vec a) { return min_or_second(y, max_or_second(x, a)); });
    case Opcode::affine:
      return map([=](Vec a) { return a * x + y; });
    case Opcode::leaky_relu:
      return map([=](Vec a) { return select(a < none, a * x, a); });
    case Opcode::hard_sigmoid:
      return map([=](Vec a) { return min_or_second(one, max_or_second(none, a * x + y)); });
    case Opcode::hard_swish:
      return map([=](Vec a) { return a * min_or_second(one, max_or_second(none, a * (1.0f / 6) + 0.5f)); });
    case Opcode::sigmoid:
      return map([](Vec a) { return sigmoid(a); });
    case Opcode::silu:
      return map([](Vec a) { return silu(a); });
    case Opcode::tanh:
      return map([](Vec a) { return tanh(a); });
    case Opcode::gelu_erf:
      return map([](Vec a) { return gelu_erf(a); });
    case Opcode::gelu_tanh:
      return map([](Vec a) { return gelu_tanh(a); });
    case Opcode::mish:
      return map([](Vec a) { return mish(a); });
    default:
      return;
  }
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
  for (const EpilogueStep& step : bound.epilogue->chain)
    run_step(step, bound, where, sums, row_stride, rows, column, columns);
  for (int r = 0; r < rows; ++r) store_row(where.out[r] + column, sums + r * row_stride, columns);
}

}  // namespace lathe::cpu::LATHE_ISA
