// SPDX-License-Identifier: Apache-2.0
// Resizing by gathering: each thread computes W neighbours along the output's last dimension in memory, as weighted
// sums of input elements. Samples states for each dimension i the number of taps(i), and for output coordinate o and
// tap t the input coordinate source(i, o, t) and weight(i, o, t); dimensions that stay have one tap. kTaps is the
// product.
#pragma once

#include "lib/vectors.cuh"

// The elements of a tap and their weights. One of weight 0 must not count, whatever it is: it is taken as 0.
template <class Samples, int W, class In, int R>
LATHE_DEVICE void load_tap(const In& x, const Samples& samples, const long (&c)[R], int present, long tap,
                           float (&v)[W], float (&weights)[W]) {
  constexpr int kLast = R - 1;
  long at[R];
  float weight = 1.0f;
  const long last_tap = tap % Samples::taps(kLast);
  tap /= Samples::taps(kLast);
  LATHE_UNROLL
  for (int i = kLast - 1; i >= 0; --i) {
    const long own = tap % Samples::taps(i);
    tap /= Samples::taps(i);
    at[i] = samples.source(i, c[i], own);
    weight *= samples.weight(i, c[i], own);
  }
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) v[j] = 0.0f, weights[j] = weight;
  if constexpr (!Samples::is_resized(kLast)) {
    at[kLast] = c[kLast];
    if (weight != 0.0f) load<kLast>(x, at, v, present);
  } else {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) {
      if (j >= present) continue;
      weights[j] *= samples.weight(kLast, c[kLast] + j, last_tap);
      at[kLast] = samples.source(kLast, c[kLast] + j, last_tap);
      if (weights[j] != 0.0f) v[j] = to_float(x.data[offset_of(x, at)]);
    }
  }
}

// Taps first to first + Count - 1: all loads come before the first use.
template <int Count, class Samples, int W, class In, int R>
LATHE_DEVICE void add_taps(const In& x, const Samples& samples, const long (&c)[R], int present, long first,
                           float (&totals)[W]) {
  float v[Count][W], weights[Count][W];
  LATHE_UNROLL
  for (int i = 0; i < Count; ++i) load_tap(x, samples, c, present, first + i, v[i], weights[i]);
  LATHE_UNROLL
  for (int i = 0; i < Count; ++i) LATHE_UNROLL
  for (int j = 0; j < W; ++j) totals[j] += weights[i][j] * v[i][j];
}

template <class Samples, int kTaps, int Threads, int W, class In, class Out, class Fusion>
LATHE_DEVICE void resize(const In& x, const Out& y, const Samples& samples, const Fusion& fusion) {
  constexpr int R = Out::kRank, kAtOnce = kTaps < 4 ? kTaps : 4;
  dependency_wait();
  const long run = static_cast<long>(block_x()) * Threads + thread_x();
  if (run >= count_vectors<W, long>(y)) return;
  long c[R];
  const int present = vector_coordinates<W, long>(y, run, c);
  float totals[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) totals[j] = 0.0f;
  if constexpr (kTaps <= 16) {
    LATHE_UNROLL
    for (int tap = 0; tap + kAtOnce <= kTaps; tap += kAtOnce) add_taps<kAtOnce>(x, samples, c, present, tap, totals);
  } else {
    for (int tap = 0; tap + kAtOnce <= kTaps; tap += kAtOnce) add_taps<kAtOnce>(x, samples, c, present, tap, totals);
  }
  if constexpr (kTaps % kAtOnce != 0)
    add_taps<kTaps % kAtOnce>(x, samples, c, present, kTaps - kTaps % kAtOnce, totals);
  fusion.template apply<R - 1, W>(totals, c, present);
  if constexpr (!is_float<typename Out::Type>) {  // integers take the nearest value
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) totals[j] = rintf(totals[j]);
  }
  store<R - 1, W>(y, c, totals, present);
}
