// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/gemm/pair_lanes.h"
#include "kernels/cpu/simd_levels.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/cpu/simd_scalars.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using attention::ScoreRow;

constexpr int kWide = 4;  // vectors side by side, to hide latencies

// What becomes of products beside their scaling.
enum class Change { none, addition, any };

Change change_of(const ScoreRow& row) {
  if (row.softcap != 0 || row.shown) return Change::any;
  return row.added ? Change::addition : Change::none;
}

// The scores from the products: of `lanes` keys from `at` on. What is beyond them is -inf.
template <Change kChange>
LATHE_INLINE Vec score(const ScoreRow& row, int64_t at, int lanes) {
  Vec x = load(row.scores + at) * row.scale;
  if constexpr (kChange == Change::any) {
    if (row.softcap != 0) x = tanh(x / row.softcap) * row.softcap;
    if (row.shown) x = select(load_bytes(row.shown + at, lanes) != 0, x, broadcast(row.hidden));
  }
  if (kChange == Change::addition || (kChange == Change::any && row.added))
    x += lanes == kLanes ? load(row.added + at) : load_tail(row.added + at, lanes);
  return lanes == kLanes ? x : select(iota() < lanes, x, broadcast(-kInfinity));
}

// The largest of look(i, lanes), which are scores of keys from i on, NaNs aside. What takes much code is not unrolled.
template <bool kUnrolls, class Look>
LATHE_INLINE float largest_of(const ScoreRow& row, Look&& look) {
  Vec best[kWide];
  for (Vec& b : best) b = broadcast(-kInfinity);
  const auto step = [&](int64_t i, int v, int lanes) { best[v] = max_or_second(look(i, lanes), best[v]); };
  int64_t i = 0;
  for (; kUnrolls && i + kWide * kLanes <= row.keys; i += kWide * kLanes)
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v) step(i + v * kLanes, v, kLanes);
  for (; i + kLanes <= row.keys; i += kLanes) step(i, 0, kLanes);
  if (i < row.keys) step(i, 1, static_cast<int>(row.keys - i));
  return reduce_max(max_or_second(max_or_second(best[0], best[1]), max_or_second(best[2], best[3])));
}

// Writes the scores; gives the largest. NaNs reach the result through the sum. A copy of the row: what is written might
// be the row's own numbers, for all that a compiler knows. It is made here, of single members: whole vectors of what
// was written member by member are read only when all of that has left the core.
template <Change kChange>
float write_scores(const ScoreRow& given) {
  const ScoreRow row = given;
  return largest_of<kChange != Change::any>(row, [&](int64_t i, int lanes) {
    const Vec x = score<kChange>(row, i, lanes);
    store(row.scores + i, x);
    return x;
  });
}

float write_scores(const ScoreRow& row) {
  switch (change_of(row)) {
    case Change::none:
      return write_scores<Change::none>(row);
    case Change::addition:
      return write_scores<Change::addition>(row);
    case Change::any:
      break;
  }
  return write_scores<Change::any>(row);
}

// With the sink.
float largest_with_sink(const ScoreRow& row, float largest) {
  return row.sink && *row.sink > largest ? *row.sink : largest;
}
float sum_with_sink(const ScoreRow& row, float largest, float sum) {
  return row.sink ? sum + std::exp(*row.sink - largest) : sum;
}

#if defined(LATHE_ISA_LEVEL_avx512)
// Within 3e-6 of the value, far less than bf16 rounds off (2e-3); 0 where that would be denormal.
LATHE_INLINE Vec power_of_2(Vec x) {
  // 2^floor(x) * 2^r: the scaling instruction takes floor(x) itself, the other gives r = x - floor(x), at infinities 0.
  const Vec r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __mmask16 is_normal = _mm512_cmp_ps_mask(x, broadcast(-126), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(
      is_normal, polynomial(r, {1.00000262f, 0.693003833f, 0.241442755f, 0.0520114601f, 0.0135341678f}), x);
}

// Weights are 2^((x - largest) * factor) of what lies in the row. The difference comes first: scores of keys that are
// all hidden may be as large as floats are.
float write_pairs(const ScoreRow& given, int64_t most, float largest, float factor) {
  ScoreRow row = given;
  if (row.is_second) *--row.scores = -kInfinity, ++row.keys;
  Vec sums[2] = {zero(), zero()};
  const auto weigh = [&](int64_t i, int v) {
    return power_of_2((load(row.scores + i + v * kLanes) - largest) * factor);
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= row.keys; i += 2 * kLanes) {
    const Vec weights[2] = {weigh(i, 0), weigh(i, 1)};
    sums[0] += weights[0];
    sums[1] += weights[1];
    store(row.scores + i / 2, FastBf16::pair_neighbours(weights[0], weights[1]));
  }
  for (; i < most; i += 2 * kLanes) {
    Vec weights[2];
    for (int v = 0; v < 2; ++v) {
      const int64_t rest = row.keys - i - v * kLanes;
      weights[v] =
          rest > 0 ? select(iota() < static_cast<int>(rest < kLanes ? rest : kLanes), weigh(i, v), zero()) : zero();
      sums[v] += weights[v];
    }
    store(row.scores + i / 2, FastBf16::pair_neighbours(weights[0], weights[1]));
  }
  return reduce_add(sums[0] + sums[1]);
}
#endif

}  // namespace

float weigh_scores(const ScoreRow& scored) {
  const ScoreRow row = scored;
  float most = largest_with_sink(row, write_scores(scored));
  // Of larger numbers the product rounds by as much as is taken off.
  if (row.float8 && std::fabs(most) < 1e6f) most = (std::ceil(most * kLog2E) - 8) / kLog2E;
  const Vec largest = broadcast(most);
  // Weights that would be denormal are zeros: CPUs multiply by such numbers a hundred times as slowly.
  constexpr float kLeast = -87.3365f;
  const auto weight_at = [&](int64_t i) {
    const Vec x = load(row.scores + i) - largest;
    const ExpParts parts = exp_parts(x, round_even(x * kLog2E));  // of no number above 8, nor of what is not used
    const Vec weight = select(x < kLeast, zero(), scale_by_power_of_2(parts.expm1_r + 1.0f, parts.n));
    return row.float8 ? math::nearest_multiple(weight, 0x1p-3f, 0x1p-9f) : weight;
  };
  Vec sums[2] = {zero(), zero()};
  int64_t i = 0;
  for (; i + 2 * kLanes <= row.keys; i += 2 * kLanes)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const Vec weight = weight_at(i + v * kLanes);
      store(row.scores + i + v * kLanes, weight);
      sums[v] += weight;
    }
  for (; i < row.keys; i += kLanes) {
    const int rest = row.keys - i < kLanes ? static_cast<int>(row.keys - i) : kLanes;
    const Vec weight = weight_at(i);
    store(row.scores + i, weight);
    sums[0] += select(iota() < rest, weight, zero());
  }
  return sum_with_sink(row, most, reduce_add(sums[0] + sums[1]));
}

#if defined(LATHE_ISA_LEVEL_avx512)
float weigh_scores_in_pairs(const ScoreRow& row, int64_t most) {
  float largest, factor = kLog2E;
  // Scores need not be written where products are ordered as they are.
  if (change_of(row) == Change::none && row.scale > 0 && !row.sink) {
    largest = largest_of<true>(row, [&](int64_t i, int lanes) {
      const Vec x = load(row.scores + i);
      return lanes == kLanes ? x : select(iota() < lanes, x, broadcast(-kInfinity));
    });
    factor *= row.scale;
  } else {
    largest = largest_with_sink(row, write_scores(row));
  }
  return sum_with_sink(row, largest, write_pairs(row, most, largest, factor));
}
#else  // CPUs of lower levels do not multiply bf16
float weigh_scores_in_pairs(const ScoreRow&, int64_t) { return 0; }
#endif

void scale_rows(float* data, int64_t stride, int rows, int columns, const float* factors) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; c += kLanes) {
      float* at = data + r * stride + c;
      store(at, load(at) * factors[r]);
    }
}

}  // namespace lathe::cpu::LATHE_ISA
