// SPDX-License-Identifier: Apache-2.0
// Pooling by gathering: each thread computes W neighbours along the output's last dimension in memory. Window states
// for each dimension i kernel(i), stride(i), dilation(i), pad(i) and end(i), the padding behind; dimensions that are
// not pooled have the window 1. kTaps is their product.
#pragma once

#include "lib/math.cuh"
#include "lib/vectors.cuh"

struct MaxPool {
  static constexpr bool kPadded = false;
  LATHE_DEVICE_MEMBER float start() const { return -infinity(); }
  LATHE_DEVICE_MEMBER float take(float total, float x) const { return x > total || x != x ? x : total; }
  LATHE_DEVICE_MEMBER float finish(float total, int) const { return total; }
};

// Padded: taps on the padding count.
template <bool Padded>
struct AveragePool {
  static constexpr bool kPadded = Padded;
  LATHE_DEVICE_MEMBER float start() const { return 0.0f; }
  LATHE_DEVICE_MEMBER float take(float total, float x) const { return total + x; }
  LATHE_DEVICE_MEMBER float finish(float total, int count) const { return total / static_cast<float>(count); }
};

template <int P>
struct LpPool {
  static constexpr bool kPadded = false;
  LATHE_DEVICE_MEMBER float start() const { return 0.0f; }
  LATHE_DEVICE_MEMBER float take(float total, float x) const {
    return total + (P == 1 ? fabsf(x) : P == 2 ? x * x : powf(fabsf(x), static_cast<float>(P)));
  }
  LATHE_DEVICE_MEMBER float finish(float total, int) const {
    return P == 1 ? total : P == 2 ? sqrtf(total) : powf(total, 1.0f / static_cast<float>(P));
  }
};

// Where a tap falls in one dimension.
struct TapPosition {
  long at;
  bool inside = true;
  bool in_divisor = true;  // of an average
};
template <class Kind, class Window, class In>
LATHE_DEVICE TapPosition locate_tap(const In& x, int dim, long output, long tap) {
  const long at = output * Window::stride(dim) + tap * Window::dilation(dim) - Window::pad(dim);
  if (Window::is_whole(dim)) return {at};
  const bool inside = at >= 0 && at < x.dim(dim);
  return {at, inside, Kind::kPadded ? at < x.dim(dim) + Window::end(dim) : inside};
}

// The elements under a tap, those outside as the kind's start; counts those that count.
template <class Kind, class Window, int W, class In, int R>
LATHE_DEVICE void load_tap(const Kind& kind, const In& x, const long (&c)[R], int present, long tap, float (&v)[W],
                           int (&counts)[W]) {
  constexpr int kLast = R - 1;
  long at[R];
  bool inside = true, in_divisor = true;
  const long last_tap = tap % Window::kernel(kLast);
  tap /= Window::kernel(kLast);
  LATHE_UNROLL
  for (int i = kLast - 1; i >= 0; --i) {
    const TapPosition position = locate_tap<Kind, Window>(x, i, c[i], tap % Window::kernel(i));
    tap /= Window::kernel(i);
    at[i] = position.at;
    inside = inside && position.inside;
    in_divisor = in_divisor && position.in_divisor;
  }
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) v[j] = kind.start();
  if constexpr (Window::is_whole(kLast)) {
    at[kLast] = c[kLast];
    if (inside) load<kLast>(x, at, v, present);
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) counts[j] += in_divisor;
  } else {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) {
      const TapPosition position = locate_tap<Kind, Window>(x, kLast, c[kLast] + j, last_tap);
      at[kLast] = position.at;
      if (inside && position.inside && j < present) v[j] = to_float(x.data[offset_of(x, at)]);
      counts[j] += in_divisor && position.in_divisor;
    }
  }
}

// Taps first to first + Count - 1: all loads come before the first use.
template <class Window, int Count, class Kind, int W, class In, int R>
LATHE_DEVICE void take_taps(const Kind& kind, const In& x, const long (&c)[R], int present, long first,
                            float (&totals)[W], int (&counts)[W]) {
  float v[Count][W];
  LATHE_UNROLL
  for (int i = 0; i < Count; ++i) load_tap<Kind, Window>(kind, x, c, present, first + i, v[i], counts);
  LATHE_UNROLL
  for (int i = 0; i < Count; ++i) LATHE_UNROLL
  for (int j = 0; j < W; ++j) totals[j] = kind.take(totals[j], v[i][j]);
}

template <class Kind, class Window, int kTaps, int Threads, int W, class In, class Out, class Fusion>
LATHE_DEVICE void pool(const In& x, const Out& y, const Kind& kind, const Fusion& fusion) {
  constexpr int R = Out::kRank, kAtOnce = kTaps < 4 ? kTaps : 4;
  dependency_wait();
  const long run = static_cast<long>(block_x()) * Threads + thread_x();
  if (run >= count_vectors<W, long>(y)) return;
  long c[R];
  const int present = vector_coordinates<W, long>(y, run, c);
  float totals[W];
  int counts[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) totals[j] = kind.start(), counts[j] = 0;
  if constexpr (kTaps <= 16) {
    LATHE_UNROLL
    for (int tap = 0; tap + kAtOnce <= kTaps; tap += kAtOnce)
      take_taps<Window, kAtOnce>(kind, x, c, present, tap, totals, counts);
  } else {
    for (int tap = 0; tap + kAtOnce <= kTaps; tap += kAtOnce)
      take_taps<Window, kAtOnce>(kind, x, c, present, tap, totals, counts);
  }
  if constexpr (kTaps % kAtOnce != 0)
    take_taps<Window, kTaps % kAtOnce>(kind, x, c, present, kTaps - kTaps % kAtOnce, totals, counts);
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) totals[j] = kind.finish(totals[j], counts[j]);
  fusion.template apply<R - 1, W>(totals, c, present);
  store<R - 1, W>(y, c, totals, present);
}
