// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_epilogue.h"

#include <algorithm>

#include "kernels/cpu/gemm/folded_levels.h"
#include "kernels/cpu/simd_math.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using gemm::IntegerEpilogue;
using gemm::IntegerProgram;

// Some columns of a few rows of sums.
struct Sums {
  int32_t* data;
  int64_t stride;
  int rows;
  int64_t column;
  int columns;
};

struct Levels {
  explicit LATHE_INLINE Levels(const gemm::Rounding& rounding)
      : quotient(rounding.scale), zero(UintVec(broadcast_int(static_cast<int32_t>(rounding.zero)))) {}
  // Lanes behind the last column hold whatever memory held, and wrap where that is at an end of the range.
  LATHE_INLINE IntVec operator()(Vec x) const { return IntVec(UintVec(round_to_int(quotient(x))) + zero); }
  Quotient quotient;
  UintVec zero;
};

struct Clamp {
  explicit LATHE_INLINE Clamp(const gemm::Bounds& bounds) : low(broadcast(bounds.low)), high(broadcast(bounds.high)) {}
  LATHE_INLINE Vec operator()(Vec x) const { return min_or_second(high, max_or_second(low, x)); }
  Vec low, high;
};

// The n values that an operand of one row has from a column on.
template <class T>
LATHE_INLINE Vec load_operand(const float* row, int64_t column, int n, Vec zero, Vec scale) {
  if constexpr (std::is_same_v<T, float>)
    return n == kLanes ? load(row + column) : load_tail(row + column, n);
  else
    return (load_levels(reinterpret_cast<const T*>(row) + column, n) - zero) * scale;
}

// What a form of the function below does beside adding and clipping.
constexpr int kRounds = 1, kBetween = 2;

// clip(levels(sums + bias) + residual) of a vector of columns, of which n exist. T: the residual's type, void where
// there is none.
template <int kForm, class T>
LATHE_INLINE void finish_vector(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums, int c,
                                int n) {
  const BoundEpilogue& middle = integers.middle;
  const int64_t column = sums.column + c;
  const Levels levels(integers.program->rounding);
  const Quotient between(integers.between.rounding.scale);
  const Clamp clamp(integers.bounds), clamp_between(integers.between.bounds);
  const Vec step = broadcast(integers.between.step);
  const Vec scale = load(integers.scale + column);
  const Vec bias = middle.bias ? load_tail(middle.bias + column, n) : broadcast(-0.0f);
  const IntegerProgram::Levels none;
  const auto& residual = std::is_void_v<T> ? none : integers.program->levels[static_cast<size_t>(integers.residual)];
  const Vec residual_zero = broadcast(residual.zero), residual_scale = broadcast(residual.scale);
  for (int r = 0; r < sums.rows; ++r) {
    Vec value = to_float(load_int(sums.data + r * sums.stride + c)) * scale + bias;
    if constexpr (kForm & kBetween) value = round_even(between(clamp_between(value))) * step;
    if constexpr (!std::is_void_v<T>)
      value += load_operand<T>(where.operand[integers.residual][r], column, n, residual_zero, residual_scale);
    value = clamp(value);
    if (kForm & kRounds)
      store_bytes(reinterpret_cast<std::byte*>(where.out[r]) + column, levels(value), n);
    else if (n == kLanes)
      store(where.out[r] + column, value);
    else
      store_tail(where.out[r] + column, n, value);
  }
}

// Straight to the output.
template <int kForm, class T>
void finish_direct(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums) {
  int c = 0;
  for (; c + kLanes <= sums.columns; c += kLanes) finish_vector<kForm, T>(integers, where, sums, c, kLanes);
  if (c < sums.columns) finish_vector<kForm, T>(integers, where, sums, c, sums.columns - c);
}
// The same by FoldedScales, of up to kVectors vectors of columns, of which n columns exist.
template <Between kBetween, class T, int kVectors>
LATHE_INLINE void finish_folded(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums, int c,
                                int n) {
  const FoldedLevels<kBetween, T> level(integers.folded);
  const int64_t column = sums.column + c;
  Vec scale[kVectors], offset[kVectors];
  LATHE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    scale[v] = load(integers.scale + column + v * kLanes);
    offset[v] = load(integers.folded.offset + column + v * kLanes);
  }
  for (int r = 0; r < sums.rows; ++r) {
    IntVec levels[4] = {};
    LATHE_UNROLL
    for (int v = 0; v < kVectors; ++v)
      levels[v] = level(load_int(sums.data + r * sums.stride + c + v * kLanes), scale[v], offset[v],
                        residuals_at<T>(integers, where, r, column + v * kLanes), std::min(kLanes, n - v * kLanes));
    store_packed<ByteOrder::in_a_row, true>(reinterpret_cast<std::byte*>(where.out[r]) + column, levels, n,
                                            level.packing);
  }
}
template <Between kBetween, class T>
void finish_folded(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums) {
  int c = 0;
  for (; c + 4 * kLanes <= sums.columns; c += 4 * kLanes)
    finish_folded<kBetween, T, 4>(integers, where, sums, c, 4 * kLanes);
  for (; c + kLanes < sums.columns; c += 2 * kLanes)
    finish_folded<kBetween, T, 2>(integers, where, sums, c, std::min(sums.columns - c, 2 * kLanes));
  if (c < sums.columns) finish_folded<kBetween, T, 1>(integers, where, sums, c, sums.columns - c);
}

template <class T>
void finish_typed(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums) {
  if (integers.folded.divides) {
    if constexpr (is_levels<T>) return finish_folded<Between::divided, T>(integers, where, sums);
  } else if (integers.folded.offset) {
    return (integers.has_between ? finish_folded<Between::folded, T> : finish_folded<Between::none, T>)(integers, where,
                                                                                                        sums);
  }
  constexpr decltype(&finish_typed<T>) kForms[] = {finish_direct<0, T>, finish_direct<kRounds, T>,
                                                   finish_direct<kBetween, T>, finish_direct<kRounds | kBetween, T>};
  kForms[(integers.rounds ? kRounds : 0) | (integers.has_between ? kBetween : 0)](integers, where, sums);
}
void finish_linear(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums) {
  if (integers.residual < 0) return finish_typed<void>(integers, where, sums);
  const DType type = integers.program->operand_types[static_cast<size_t>(integers.residual)];
  const auto finish = type == DType::i8   ? finish_typed<int8_t>
                      : type == DType::u8 ? finish_typed<uint8_t>
                                          : finish_typed<float>;
  finish(integers, where, sums);
}

// A row's values of one operand, from a column on.
LATHE_INLINE Vec chained_operand(const IntegerEpilogue& integers, const TileRows& where, int i, int row, int64_t column,
                                 int n) {
  const EpilogueOperand& operand = integers.middle.operands[i];
  if (!operand.varies_by_row) return load_tail(operand.data + column, n);
  const float* from = where.operand[i][row];
  const DType type = integers.program->operand_types[static_cast<size_t>(i)];
  const auto& levels = integers.program->levels[static_cast<size_t>(i)];
  const Vec zero = broadcast(levels.zero), scale = broadcast(levels.scale);
  if (type == DType::i8) return rounded(load_operand<int8_t>(from, column, n, zero, scale));
  if (type == DType::u8) return rounded(load_operand<uint8_t>(from, column, n, zero, scale));
  return load_tail(from + column, n);
}

// Up to kVectors vectors of columns, step by step, in registers.
template <int kVectors>
LATHE_INLINE void chain_columns(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums, int c,
                                int n) {
  const int64_t column = sums.column + c;
  const Levels levels(integers.program->rounding);
  const Clamp clamp(integers.bounds);
  for (int r = 0; r < sums.rows; ++r) {
    Vec value[kVectors];
    const auto each = [&](auto&& change) {
      LATHE_UNROLL
      for (int v = 0; v < kVectors; ++v) value[v] = change(value[v], v);
    };
    each([&](Vec, int v) {
      const int64_t at = v * kLanes;
      return to_float(load_int(sums.data + r * sums.stride + c + at)) * load(integers.scale + column + at);
    });
    for (const EpilogueStep& step : integers.middle.epilogue->chain) {
      const Vec x = broadcast(step.x), y = broadcast(step.y);
      if (step.op == StepOp::add) {
        each([&](Vec a, int v) {
          return a + chained_operand(integers, where, step.operand, r, column + v * kLanes, kVectors > 1 ? kLanes : n);
        });
      } else if (step.op == StepOp::levels) {
        const Quotient quotient(step.x);
        const Clamp within({step.z * step.x, step.w * step.x});
        each([&](Vec a, int) { return round_even(quotient(within(a))) * y; });
      } else if (step.op == StepOp::affine) {
        each([&](Vec a, int) { return a * x + y; });
      } else {
        const bool is_clip = step.op == StepOp::clip;
        const Clamp within({is_clip ? step.x : 0, is_clip ? step.y : kInfinity});
        each([&](Vec a, int) { return within(a); });
      }
    }
    each([&](Vec a, int v) {
      if (integers.rounds)
        store_bytes(reinterpret_cast<std::byte*>(where.out[r]) + column + v * kLanes, levels(clamp(a)),
                    kVectors > 1 ? kLanes : n);
      else
        store_tail(where.out[r] + column + v * kLanes, kVectors > 1 ? kLanes : n, a);
      return a;
    });
  }
}
void finish_chain(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums) {
  int c = 0;
  for (; c + 4 * kLanes <= sums.columns; c += 4 * kLanes) chain_columns<4>(integers, where, sums, c, 4 * kLanes);
  for (; c < sums.columns; c += kLanes) chain_columns<1>(integers, where, sums, c, std::min(sums.columns - c, kLanes));
}

// An operand's columns from one on; `row` is where column 0 lies.
template <class T>
void dequantize_row(float* to, const float* row, int64_t stride, const IntegerProgram::Levels& levels, int64_t column,
                    int columns) {
  T gathered[kMaxTileColumns];
  if (stride != 1) {
    const T* from = reinterpret_cast<const T*>(row) + column * stride;
    for (int c = 0; c < columns; ++c) gathered[c] = from[c * stride];
    row = reinterpret_cast<const float*>(gathered);
    column = 0;
  }
  const Vec zero = broadcast(levels.zero), scale = broadcast(levels.scale);
  for (int c = 0; c < columns; c += kLanes)
    store(to + c, load_operand<T>(row, column + c, columns - c < kLanes ? columns - c : kLanes, zero, scale));
}

// Runs the program on rows of floats that lie here. The sums become floats in place.
void finish_program(const IntegerEpilogue& integers, const TileRows& tile, const Sums& sums) {
  alignas(64) float buffers[1 + gemm::kMaxSmallOperands][kMaxTileRows * kMaxTileColumns];
  float* next = buffers[1];
  BoundEpilogue middle = integers.middle;
  auto* values = reinterpret_cast<float*>(sums.data);
  for (int c = 0; c < sums.columns; c += kLanes) {
    const Vec scale = load(integers.scale + sums.column + c);
    for (int r = 0; r < sums.rows; ++r)
      store(values + r * sums.stride + c, to_float(load_int(sums.data + r * sums.stride + c)) * scale);
  }
  // Row 0 of what is dequantised or rounded lies where the first column of the output would be.
  TileRows where = tile;
  for (int i = 0; integers.dequantizes && i < middle.count; ++i) {
    const DType type = integers.program->operand_types[static_cast<size_t>(i)];
    if (!middle.operands[i].varies_by_row || (type != DType::i8 && type != DType::u8)) continue;
    for (int r = 0; r < sums.rows; ++r) {
      float* to = next + r * kMaxTileColumns;
      const auto convert = type == DType::i8 ? dequantize_row<int8_t> : dequantize_row<uint8_t>;
      convert(to, where.operand[i][r], middle.operands[i].column_stride,
              integers.program->levels[static_cast<size_t>(i)], sums.column, sums.columns);
      where.operand[i][r] = to - sums.column;
    }
    middle.operands[i].column_stride = 1;
    next += kMaxTileRows * kMaxTileColumns;
  }
  if (integers.rounds)
    for (int r = 0; r < sums.rows; ++r) where.out[r] = buffers[0] + r * kMaxTileColumns - sums.column;
  finish_tile(middle, where, values, sums.stride, sums.rows, sums.column, sums.columns);
  if (!integers.rounds) return;
  const Levels levels(integers.program->rounding);
  const Clamp clamp(integers.bounds);
  for (int r = 0; r < sums.rows; ++r)
    for (int c = 0; c < sums.columns; c += kLanes)
      store_bytes(reinterpret_cast<std::byte*>(tile.out[r]) + sums.column + c,
                  levels(clamp(load(buffers[0] + r * kMaxTileColumns + c))),
                  sums.columns - c < kLanes ? sums.columns - c : kLanes);
}

void finish_raw(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums) {
  for (int c = 0; c < sums.columns; c += kLanes) {
    const int n = sums.columns - c < kLanes ? sums.columns - c : kLanes;
    for (int r = 0; r < sums.rows; ++r)
      store_tail(where.out[r] + sums.column + c, n, as_float(load_int(sums.data + r * sums.stride + c)));
  }
}

// The term of each row, of one number or of one for each column.
void take_off_term(const IntegerEpilogue& integers, const TileRows& where, const Sums& sums) {
  const bool is_of_row = integers.middle.operands[integers.term].column_stride == 0;
  for (int c = 0; c < sums.columns; c += kLanes) {
    const IntVec factor = load_int(integers.factors + sums.column + c);
    const int n = std::min(sums.columns - c, kLanes);
    for (int r = 0; r < sums.rows; ++r) {
      const auto* row = reinterpret_cast<const int32_t*>(where.operand[integers.term][r]);
      const IntVec term =
          is_of_row ? broadcast_int(*row) : as_int(load_tail(where.operand[integers.term][r] + sums.column + c, n));
      int32_t* to = sums.data + r * sums.stride + c;
      store_int(to, load_int(to) - term * factor);
    }
  }
}

}  // namespace

void finish_integers(const IntegerEpilogue& integers, const TileRows& where, int32_t* sums, int64_t stride, int rows,
                     int64_t column, int columns) {
  if (integers.term >= 0) take_off_term(integers, where, {sums, stride, rows, column, columns});
  const auto finish = integers.raw       ? finish_raw
                      : integers.direct  ? finish_linear
                      : integers.chained ? finish_chain
                                         : finish_program;
  finish(integers, where, {sums, stride, rows, column, columns});
}

template <class T>
bool gives_levels_of(const gemm::FoldedScales& fused, const gemm::FoldedScales& divided) {
  const FoldedLevels<Between::folded, T> first(fused);
  const FoldedLevels<Between::divided, T> second(divided);
  const auto clip = [&](IntVec level) {
    return min_int(broadcast_int(divided.most), max_int(broadcast_int(divided.least), level + divided.zero));
  };
  T residuals[256];
  for (int i = 0; i < 256; ++i) residuals[i] = static_cast<T>(i);
  for (auto level = static_cast<int32_t>(divided.low), high = static_cast<int32_t>(divided.high); level <= high;
       ++level) {
    IntVec differs{};
    for (int i = 0; i < 256; i += kLanes) {
      const auto of = [&](const auto& levels) {
        return clip(levels(broadcast_int(level), broadcast(1), zero(), residuals + i, kLanes));
      };
      differs |= of(first) ^ of(second);
    }
    for (int i = 0; i < kLanes; ++i)
      if (differs[i] != 0) return false;
  }
  return true;
}

bool gives_levels_of(const gemm::FoldedScales& fused, const gemm::FoldedScales& divided, bool is_signed) {
  return (is_signed ? gives_levels_of<int8_t> : gives_levels_of<uint8_t>)(fused, divided);
}

bool fold_columns(const gemm::FoldedColumns& folded) {
  const Vec factor = broadcast(folded.factor), shift = broadcast(folded.shift), most = broadcast(folded.most);
  IntVec fits = broadcast_int(-1);
  const auto lanes_at = [&](int64_t c) { return static_cast<int>(std::min<int64_t>(folded.columns - c, kLanes)); };
  for (int64_t c = 0; c < folded.columns; c += kLanes) {
    const int n = lanes_at(c);
    const Vec bias = folded.bias ? load_tail(folded.bias + c, n) * factor : zero();
    store_tail(folded.offset + c, n, bias + shift);
    fits &= abs(load_tail(folded.scale + c, n) * factor) * 0x1p31f + abs(bias) + most < gemm::kConvertible;
  }
  for (int i = 0; i < kLanes; ++i)
    if (!fits[i]) return false;
  for (int64_t c = 0; c < folded.columns; c += kLanes)
    store_tail(folded.scale + c, lanes_at(c), load_tail(folded.scale + c, lanes_at(c)) * factor);
  return true;
}

}  // namespace lathe::cpu::LATHE_ISA
