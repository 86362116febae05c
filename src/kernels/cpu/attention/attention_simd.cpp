// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/simd_levels.h"
#include "kernels/cpu/simd_math.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using attention::ScoreRow;

constexpr int kWide = 4;  // vectors side by side, to hide latencies

// The scores from the products: of `lanes` keys from `at` on. What is beyond them is -inf.
template <bool kIsPlain>
LATHE_INLINE Vec score(const ScoreRow& row, int64_t at, int lanes) {
  Vec x = load(row.scores + at) * row.scale;
  if constexpr (!kIsPlain) {
    if (row.softcap != 0) x = tanh(x / row.softcap) * row.softcap;
    if (row.shown) x = select(load_bytes(row.shown + at, lanes) != 0, x, broadcast(row.hidden));
    if (row.added) x += lanes == kLanes ? load(row.added + at) : load_tail(row.added + at, lanes);
  }
  return lanes == kLanes ? x : select(iota() < lanes, x, broadcast(-kInfinity));
}

// Writes the scores; gives the largest, NaNs aside: they reach the result through the sum.
template <bool kIsPlain>
float write_scores(const ScoreRow& row) {
  Vec best[kWide];
  for (Vec& b : best) b = broadcast(-kInfinity);
  const auto step = [&](int64_t i, int v, int lanes) {
    const Vec x = score<kIsPlain>(row, i, lanes);
    store(row.scores + i, x);
    best[v] = max_or_second(x, best[v]);
  };
  int64_t i = 0;
  for (; i + kWide * kLanes <= row.keys; i += kWide * kLanes)
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v) step(i + v * kLanes, v, kLanes);
  for (; i + kLanes <= row.keys; i += kLanes) step(i, 0, kLanes);
  if (i < row.keys) step(i, 1, static_cast<int>(row.keys - i));
  return reduce_max(max_or_second(max_or_second(best[0], best[1]), max_or_second(best[2], best[3])));
}

}  // namespace

float weigh_scores(const ScoreRow& row) {
  const bool is_plain = row.softcap == 0 && !row.shown && !row.added;
  const Vec largest = broadcast(is_plain ? write_scores<true>(row) : write_scores<false>(row));
  Vec sums[2] = {zero(), zero()};
  int64_t i = 0;
  for (; i + 2 * kLanes <= row.keys; i += 2 * kLanes)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const Vec weight = exp(load(row.scores + i + v * kLanes) - largest);
      store(row.scores + i + v * kLanes, weight);
      sums[v] += weight;
    }
  for (; i < row.keys; i += kLanes) {
    const int rest = row.keys - i < kLanes ? static_cast<int>(row.keys - i) : kLanes;
    const Vec weight = exp(load(row.scores + i) - largest);
    store(row.scores + i, weight);
    sums[0] += select(iota() < rest, weight, zero());
  }
  return reduce_add(sums[0] + sums[1]);
}

void scale_rows(float* data, int64_t stride, int rows, int columns, const float* factors) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; c += kLanes) {
      float* at = data + r * stride + c;
      store(at, load(at) * factors[r]);
    }
}

}  // namespace lathe::cpu::LATHE_ISA
