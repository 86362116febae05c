// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/softmax/softmax.h"

#include "kernels/cpu/simd_math.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

constexpr int kWide = 4;  // vectors side by side, to hide latencies

// The largest element, NaNs aside: they reach the result through the sum.
float row_maximum(const float* in, int64_t n) {
  Vec best[kWide];
  for (Vec& b : best) b = broadcast(-kInfinity);
  int64_t i = 0;
  for (; i + kWide * kLanes <= n; i += kWide * kLanes)
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v) best[v] = max_or_second(load(in + i + v * kLanes), best[v]);
  for (; i + kLanes <= n; i += kLanes) best[0] = max_or_second(load(in + i), best[0]);
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    best[1] = max_or_second(select(iota() < rest, load_tail(in + i, rest), broadcast(-kInfinity)), best[1]);
  }
  return reduce_max(max_or_second(max_or_second(best[0], best[1]), max_or_second(best[2], best[3])));
}

// Returns the sum of e^(in - shift); stores the terms unless `out` is null.
template <bool keep>
float row_exponentials(const float* in, float* out, int64_t n, Vec shift) {
  Vec sums[2] = {zero(), zero()};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const Vec e = exp(load(in + i + v * kLanes) - shift);
      if constexpr (keep) store(out + i + v * kLanes, e);
      sums[v] += e;
    }
  for (; i < n; i += kLanes) {
    const int rest = n - i < kLanes ? static_cast<int>(n - i) : kLanes;
    const Vec e = exp(load_tail(in + i, rest) - shift);
    if constexpr (keep) store_tail(out + i, rest, e);
    sums[0] += select(iota() < rest, e, zero());
  }
  return reduce_add(sums[0] + sums[1]);
}

template <class Change>
LATHE_INLINE void change_row(const float* in, float* out, int64_t n, const Change& change) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, change(load(in + i)));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    store_tail(out + i, rest, change(load_tail(in + i, rest)));
  }
}

template <int vectors>
LATHE_INLINE void column_block(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t n,
                               bool logarithm, int lanes) {
  const auto get = [&](const float* p, int v) { return lanes == kLanes ? load(p + v * kLanes) : load_tail(p, lanes); };
  const auto put = [&](float* p, int v, Vec x) {
    lanes == kLanes ? store(p + v * kLanes, x) : store_tail(p, lanes, x);
  };
  Vec best[vectors], sums[vectors];
  for (int v = 0; v < vectors; ++v) best[v] = broadcast(-kInfinity), sums[v] = zero();
  for (int64_t i = 0; i < n; ++i)
    for (int v = 0; v < vectors; ++v) best[v] = max_or_second(get(in + i * in_stride, v), best[v]);
  for (int64_t i = 0; i < n; ++i)
    for (int v = 0; v < vectors; ++v) {
      const Vec x = get(in + i * in_stride, v) - best[v], e = exp(x);
      sums[v] += e;
      put(out + i * out_stride, v, logarithm ? x : e);
    }
  for (int v = 0; v < vectors; ++v) sums[v] = logarithm ? log(sums[v]) : 1.0f / sums[v];
  for (int64_t i = 0; i < n; ++i)
    for (int v = 0; v < vectors; ++v) {
      const Vec x = get(out + i * out_stride, v);
      put(out + i * out_stride, v, logarithm ? x - sums[v] : x * sums[v]);
    }
}

}  // namespace

void softmax_row(const float* in, float* out, int64_t n, bool logarithm) {
  const Vec shift = broadcast(row_maximum(in, n));
  if (logarithm) {
    // Beside a large number the logarithm of the sum would be rounded off.
    const Vec log_sum = log(broadcast(row_exponentials<false>(in, nullptr, n, shift)));
    change_row(in, out, n, [&](Vec x) { return x - shift - log_sum; });
  } else {
    const Vec factor = broadcast(1.0f / row_exponentials<true>(in, out, n, shift));
    change_row(out, out, n, [&](Vec x) { return x * factor; });
  }
}

void softmax_columns(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t n, int64_t columns,
                     bool logarithm) {
  int64_t c = 0;
  for (; c + 2 * kLanes <= columns; c += 2 * kLanes)
    column_block<2>(in + c, in_stride, out + c, out_stride, n, logarithm, kLanes);
  for (; c < columns; c += kLanes) {
    const int lanes = columns - c < kLanes ? static_cast<int>(columns - c) : kLanes;
    column_block<1>(in + c, in_stride, out + c, out_stride, n, logarithm, lanes);
  }
}

}  // namespace lathe::cpu::LATHE_ISA
