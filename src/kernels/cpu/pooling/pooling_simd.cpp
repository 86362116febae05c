// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/pooling/pooling.h"

#include <limits>

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

// Vectors of channels that are kept in registers during one walk over the window.
constexpr int kWide = 4;

// Of windows that are not empty: `best` starts as the first pixel.
template <int vectors>
LATHE_INLINE void maximum(const PoolWindow& w, int64_t c, Vec (&best)[vectors]) {
  for (int v = 0; v < vectors; ++v) best[v] = load(w.data + c + v * kLanes);
  for (int64_t i = 0; i < w.count[0]; ++i)
    for (int64_t j = 0; j < w.count[1]; ++j) {
      const int64_t first = i == 0 && j == 0;
      const float* p = w.data + i * w.stride[0] + j * w.stride[1] + first * w.stride[2] + c;
      for (int64_t k = first; k < w.count[2]; ++k, p += w.stride[2])
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) best[v] = max_nan(load(p + v * kLanes), best[v]);
    }
}

// Sums by rows of the window, so that large windows lose little precision.
template <int vectors>
LATHE_INLINE void sum(const PoolWindow& w, int64_t c, Vec (&total)[vectors]) {
  for (int64_t i = 0; i < w.count[0]; ++i)
    for (int64_t j = 0; j < w.count[1]; ++j) {
      const float* p = w.data + i * w.stride[0] + j * w.stride[1] + c;
      Vec row[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) row[v] = zero();
      for (int64_t k = 0; k < w.count[2]; ++k, p += w.stride[2])
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) row[v] += load(p + v * kLanes);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) total[v] += row[v];
    }
}

template <class F>
LATHE_INLINE Vec tail(const PoolWindow& w, int64_t c, int n, Vec start, F&& combine) {
  for (int64_t i = 0; i < w.count[0]; ++i)
    for (int64_t j = 0; j < w.count[1]; ++j) {
      const float* p = w.data + i * w.stride[0] + j * w.stride[1] + c;
      for (int64_t k = 0; k < w.count[2]; ++k, p += w.stride[2]) start = combine(load_tail(p, n), start);
    }
  return start;
}

template <int vectors>
LATHE_INLINE int64_t all_maxima(const PoolWindow& w, int64_t c, int64_t channels, float* target) {
  for (; c + vectors * kLanes <= channels; c += vectors * kLanes) {
    Vec best[vectors];
    maximum<vectors>(w, c, best);
    for (int v = 0; v < vectors; ++v) store(target + c + v * kLanes, best[v]);
  }
  return c;
}

template <int vectors>
LATHE_INLINE int64_t all_averages(const PoolWindow& w, int64_t c, int64_t channels, float scale, float* target) {
  for (; c + vectors * kLanes <= channels; c += vectors * kLanes) {
    Vec total[vectors];
    for (Vec& t : total) t = zero();
    sum<vectors>(w, c, total);
    for (int v = 0; v < vectors; ++v) store(target + c + v * kLanes, total[v] * scale);
  }
  return c;
}

// p[0], p[stride], ...
template <int stride>
LATHE_INLINE Vec load_every(const float* p) {
  if constexpr (stride == 1) return load(p);
#if defined(LATHE_ISA_LEVEL_avx512)
  return __builtin_shufflevector(load(p), load(p + kLanes), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return __builtin_shufflevector(load(p), load(p + kLanes), 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(load(p), load(p + kLanes), 0, 2, 4, 6);
#endif
}

template <int stride>
void pool_vectors(const PoolRow& row, const float* scales, float* target) {
  static_assert(2 * stride * kLanes <= kPoolRowSlack);
  for (int64_t x = 0; x < row.outputs; x += kLanes) {
    const float* p = row.data + x * stride;
    Vec value = load_every<stride>(p);
    for (int64_t k = 1; k < row.kernel; ++k) {
      p += row.dilation;
      value = scales ? value + load_every<stride>(p) : max_nan(load_every<stride>(p), value);
    }
    const int n = row.outputs - x < kLanes ? static_cast<int>(row.outputs - x) : kLanes;
    if (scales) value *= load_tail(scales + x, n);
    store_tail(target + x, n, value);
  }
}

}  // namespace

void pool_along(const PoolRow& row, const float* scales, float* target) {
  if (row.stride == 1) return pool_vectors<1>(row, scales, target);
  if (row.stride == 2) return pool_vectors<2>(row, scales, target);
  for (int64_t x = 0; x < row.outputs; ++x) {
    const float* p = row.data + x * row.stride;
    float sum = 0, best = -__builtin_inff();
    for (int64_t k = 0; k < row.kernel; ++k, p += row.dilation) {
      sum += *p;
      best = *p != *p || *p > best ? *p : best;
    }
    target[x] = scales ? scales[x] * sum : best;
  }
}

void pool_maximum(const PoolWindow& window, int64_t channels, float* target) {
  const bool is_empty = window.count[0] <= 0 || window.count[1] <= 0 || window.count[2] <= 0;
  for (int64_t i = 0; is_empty && i < channels; ++i) target[i] = -__builtin_inff();
  if (is_empty) return;
  int64_t c = all_maxima<kWide>(window, 0, channels, target);
  c = all_maxima<2>(window, c, channels, target);
  c = all_maxima<1>(window, c, channels, target);
  if (c == channels) return;
  const int n = static_cast<int>(channels - c);
  store_tail(target + c, n,
             tail(window, c, n, broadcast(-__builtin_inff()), [](Vec x, Vec best) { return max_nan(x, best); }));
}

void pool_average(const PoolWindow& window, int64_t channels, float scale, float* target) {
  int64_t c = all_averages<kWide>(window, 0, channels, scale, target);
  c = all_averages<2>(window, c, channels, scale, target);
  c = all_averages<1>(window, c, channels, scale, target);
  if (c == channels) return;
  const int n = static_cast<int>(channels - c);
  store_tail(target + c, n, scale * tail(window, c, n, zero(), [](Vec x, Vec total) { return total + x; }));
}

namespace {

// Neighbouring channels of a window that is not empty: as many as V holds.
template <class T, class V>
LATHE_INLINE void maximum_of_bytes(const PoolWindow& w, int64_t c, T* target) {
  const T* data = reinterpret_cast<const T*>(w.data) + c;
  V best, next;
  std::memcpy(&best, data, sizeof(best));
  for (int64_t i = 0; i < w.count[0]; ++i)
    for (int64_t j = 0; j < w.count[1]; ++j) {
      const T* p = data + i * w.stride[0] + j * w.stride[1];
      for (int64_t k = 0; k < w.count[2]; ++k, p += w.stride[2]) {
        std::memcpy(&next, p, sizeof(next));
        best = next > best ? next : best;
      }
    }
  std::memcpy(target + c, &best, sizeof(best));
}

template <class T>
void all_maxima_of_bytes(const PoolWindow& w, int64_t channels, T* target) {
  typedef T Bytes __attribute__((vector_size(kVecBytes)));
  const bool is_empty = w.count[0] <= 0 || w.count[1] <= 0 || w.count[2] <= 0;
  for (int64_t i = 0; is_empty && i < channels; ++i) target[i] = std::numeric_limits<T>::lowest();
  if (is_empty) return;
  int64_t c = 0;
  for (; c + kVecBytes <= channels; c += kVecBytes) maximum_of_bytes<T, Bytes>(w, c, target);
  for (; c < channels; ++c) maximum_of_bytes<T, T>(w, c, target);
}

}  // namespace

void pool_maximum_of_bytes(const PoolWindow& window, int64_t channels, bool is_signed, std::byte* target) {
  if (is_signed)
    all_maxima_of_bytes(window, channels, reinterpret_cast<int8_t*>(target));
  else
    all_maxima_of_bytes(window, channels, reinterpret_cast<uint8_t*>(target));
}

}  // namespace lathe::cpu::LATHE_ISA
