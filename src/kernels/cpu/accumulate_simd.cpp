// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/accumulate.h"

#include "kernels/cpu/simd_math.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

constexpr int64_t kRows = 64;                    // rows of a column, that are added up in f32
constexpr int kWide = 4;                         // vectors that are accumulated side by side
constexpr int64_t kBlock = 32 * kWide * kLanes;  // elements of a row that are added up in f32

template <Accumulation kind>
LATHE_INLINE Vec combine(Vec total, Vec x, Vec shift) {
  if constexpr (kind == Accumulation::sum) return total + x;
  if constexpr (kind == Accumulation::sum_abs) return total + LATHE_ISA::abs(x);
  if constexpr (kind == Accumulation::sum_squares) return total + (x - shift) * (x - shift);
  if constexpr (kind == Accumulation::sum_exp) return total + LATHE_ISA::exp(x - shift);
  if constexpr (kind == Accumulation::maximum) return max_nan(x, total);
  if constexpr (kind == Accumulation::minimum) return min_nan(x, total);
  if constexpr (kind == Accumulation::product) return total * x;
}

// Two totals of the same kind.
template <Accumulation kind>
LATHE_INLINE Vec merge(Vec a, Vec b) {
  if constexpr (kind == Accumulation::maximum) return max_nan(a, b);
  if constexpr (kind == Accumulation::minimum) return min_nan(a, b);
  if constexpr (kind == Accumulation::product) return a * b;
  return a + b;
}

// A total that keeps what rounding lost (Kahan), for sums of many parts.
struct Total {
  Vec value, lost{};
};
template <Accumulation kind>
LATHE_INLINE void merge(Total& total, Vec part) {
  if constexpr (kind == Accumulation::maximum || kind == Accumulation::minimum || kind == Accumulation::product) {
    total.value = merge<kind>(total.value, part);
  } else {
    const Vec y = part - total.lost;
    const Vec sum = total.value + y;
    const Vec lost = (sum - total.value) - y;
    total.lost = select(lost - lost == 0.0f, lost, zero());  // inf - inf must not spoil the total
    total.value = sum;
  }
}

template <Accumulation kind>
double merge_scalar(double a, double b) {
  if constexpr (kind == Accumulation::maximum) return b > a || b != b ? b : a;
  if constexpr (kind == Accumulation::minimum) return b < a || b != b ? b : a;
  if constexpr (kind == Accumulation::product) return a * b;
  return a + b;
}

// Lanes beyond n contribute nothing.
template <Accumulation kind>
LATHE_INLINE Vec combine_tail(Vec total, const float* data, int n, Vec shift) {
  return select(iota() < n, combine<kind>(total, load_tail(data, n), shift), total);
}

// A total of any kind with the lanes of another. Long vectors are folded: their lanes, one after the other, would each
// wait for the addition of the one before.
template <Accumulation kind>
LATHE_INLINE double merge_lanes(double total, Vec part) {
#if defined(LATHE_ISA_LEVEL_avx512)
  if constexpr (kind != Accumulation::maximum && kind != Accumulation::minimum && kind != Accumulation::product)
    return total + _mm512_reduce_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(part)) +
                                        _mm512_cvtps_pd(_mm512_extractf32x8_ps(part, 1)));
#endif
  float lanes[kLanes];
  store(lanes, part);
  for (const float lane : lanes) total = merge_scalar<kind>(total, lane);
  return total;
}

template <Accumulation kind>
double row(double total, const float* data, int64_t n, float shift_value) {
  const Vec shift = broadcast(shift_value);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = n - begin < kBlock ? n : begin + kBlock;
    Vec sums[kWide];
    for (Vec& s : sums) s = broadcast(start_of(kind));
    int64_t i = begin;
    for (; i + kWide * kLanes <= end; i += kWide * kLanes)
#pragma GCC unroll 4
      for (int v = 0; v < kWide; ++v) sums[v] = combine<kind>(sums[v], load(data + i + v * kLanes), shift);
    for (; i + kLanes <= end; i += kLanes) sums[0] = combine<kind>(sums[0], load(data + i), shift);
    if (i < end) sums[1] = combine_tail<kind>(sums[1], data + i, static_cast<int>(end - i), shift);
    total = merge_lanes<kind>(total, merge<kind>(merge<kind>(sums[0], sums[1]), merge<kind>(sums[2], sums[3])));
  }
  return total;
}

template <Accumulation kind, int vectors>
LATHE_INLINE void column_block(float* totals, const float* shifts, const float* data, int64_t rows,
                               int64_t row_stride) {
  Vec shift[vectors];
  Total total[vectors];
  for (int v = 0; v < vectors; ++v) shift[v] = shifts ? load(shifts + v * kLanes) : zero();
  for (int v = 0; v < vectors; ++v) total[v].value = load(totals + v * kLanes);
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t end = rows - begin < kRows ? rows : begin + kRows;
    Vec part[vectors];
    for (int v = 0; v < vectors; ++v) part[v] = broadcast(start_of(kind));
    for (int64_t r = begin; r < end; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        part[v] = combine<kind>(part[v], load(data + r * row_stride + v * kLanes), shift[v]);
    for (int v = 0; v < vectors; ++v) merge<kind>(total[v], part[v]);
  }
  for (int v = 0; v < vectors; ++v) store(totals + v * kLanes, total[v].value);
}

template <Accumulation kind>
void column_tail(float* totals, const float* shifts, const float* data, int64_t rows, int64_t row_stride, int n) {
  const Vec shift = shifts ? load_tail(shifts, n) : zero();
  Total total{load_tail(totals, n)};
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    Vec part = broadcast(start_of(kind));
    for (int64_t r = begin; r < rows && r < begin + kRows; ++r)
      part = combine<kind>(part, load_tail(data + r * row_stride, n), shift);
    merge<kind>(total, part);
  }
  store_tail(totals, n, total.value);
}

template <Accumulation kind>
void columns_of(float* totals, const float* shifts, const float* data, int64_t rows, int64_t row_stride,
                int64_t columns) {
  int64_t c = 0;
  const auto shifts_at = [&] { return shifts ? shifts + c : nullptr; };
  for (; c + kWide * kLanes <= columns; c += kWide * kLanes)
    column_block<kind, kWide>(totals + c, shifts_at(), data + c, rows, row_stride);
  for (; c + kLanes <= columns; c += kLanes) column_block<kind, 1>(totals + c, shifts_at(), data + c, rows, row_stride);
  if (c < columns)
    column_tail<kind>(totals + c, shifts_at(), data + c, rows, row_stride, static_cast<int>(columns - c));
}

}  // namespace

#define LATHE_FOR_EACH_KIND(LATHE_KIND) \
  LATHE_KIND(sum)                       \
  LATHE_KIND(sum_abs)                   \
  LATHE_KIND(sum_squares) LATHE_KIND(sum_exp) LATHE_KIND(maximum) LATHE_KIND(minimum) LATHE_KIND(product)

double accumulate_row(Accumulation kind, double total, const float* data, int64_t n, float shift) {
  switch (kind) {
#define LATHE_KIND(name)   \
  case Accumulation::name: \
    return row<Accumulation::name>(total, data, n, shift);
    LATHE_FOR_EACH_KIND(LATHE_KIND)
#undef LATHE_KIND
  }
  return total;
}

void accumulate_columns(Accumulation kind, float* totals, const float* shifts, const float* data, int64_t rows,
                        int64_t row_stride, int64_t columns) {
  switch (kind) {
#define LATHE_KIND(name)   \
  case Accumulation::name: \
    return columns_of<Accumulation::name>(totals, shifts, data, rows, row_stride, columns);
    LATHE_FOR_EACH_KIND(LATHE_KIND)
#undef LATHE_KIND
  }
}

}  // namespace lathe::cpu::LATHE_ISA
