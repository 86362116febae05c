// SPDX-License-Identifier: Apache-2.0
// Slices that are written into a tensor from the place on that another one tells, and computed before.
#pragma once

#include "lib/vectors.cuh"

template <class List, int N>
LATHE_DEVICE long along(const List& strides, const long (&c)[N]) {
  long sum = 0;
  LATHE_UNROLL
  for (int i = 0; i < N; ++i) sum += c[i] * strides(i);
  return sum;
}

// A thread for W neighbours, all of one slice. `out` is seen along the axes of x, as if the first slice were to come
// first; slices are `pitch` elements apart there, and `extent` of them are all. Which entry of the batch an element
// belongs to, and which slice of the update, is the sum of its coordinates times `entries` and `slices`.
template <int W, class In, class Prologue, class First, class Entries, class Slices, class Out>
LATHE_DEVICE void tensor_scatter_computed(const In& x, const Prologue& prologue, const First& first,
                                          const Entries& entries, const Slices& slices, Out out, long extent,
                                          long pitch) {
  constexpr int D = In::kRank - 1;
  dependency_wait();
  const long vector = static_cast<long>(block_x()) * block_threads() + thread_x();
  if (vector >= count_vectors<W, long>(x)) return;
  long c[In::kRank];
  const int count = vector_coordinates<W, long>(x, vector, c);
  const long start = static_cast<long>(first.data[along(entries, c)]);
  if (start < 0 || start >= extent - along(slices, c)) return;
  float v[W];
  load<D>(x, c, v, count);
  prologue.template apply<D>(v, c, count);
  out.data += start * pitch;
  store<D>(out, c, v, count);
}
