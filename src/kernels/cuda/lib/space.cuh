// SPDX-License-Identifier: Apache-2.0
// Index spaces of rows: the first Kept dimensions count rows, the others the elements of one row. A chunk is W elements
// along the last dimension, whose extent W divides.
#pragma once

#include "lib/tensor.cuh"

// Coordinates of dimensions First .. First + Count - 1 from their flat index, row-major.
template <int First, int Count, class Tensor, int R>
LATHE_DEVICE void unflatten_dims(const Tensor& tensor, long index, long (&c)[R]) {
  LATHE_UNROLL
  for (int i = First + Count - 1; i > First; --i) {
    const long dim = tensor.dim(i);
    c[i] = index % dim;
    index /= dim;
  }
  if constexpr (Count > 0) c[First] = index;
}

// Elements of dimensions First .. First + Count - 1.
template <int First, int Count, class Tensor>
LATHE_DEVICE long extent_of(const Tensor& tensor) {
  long extent = 1;
  LATHE_UNROLL
  for (int i = First; i < First + Count; ++i) extent *= tensor.dim(i);
  return extent;
}

template <int First, int W, class Tensor>
LATHE_DEVICE long chunks_of(const Tensor& tensor) {
  return extent_of<First, Tensor::kRank - First>(tensor) / W;
}

// Coordinates of a chunk's first element in dimensions First and up.
template <int First, int W, class Tensor, int R>
LATHE_DEVICE void unflatten_chunk(const Tensor& tensor, long chunk, long (&c)[R]) {
  constexpr int kLast = Tensor::kRank - 1;
  if constexpr (First == kLast) {
    c[kLast] = chunk * W;
  } else {
    const long along = tensor.dim(kLast) / W;
    c[kLast] = chunk % along * W;
    unflatten_dims<First, kLast - First>(tensor, chunk / along, c);
  }
}

// The part [begin, end) of `count` that falls to `index` of `parts`.
struct Part {
  long begin, end;
};
LATHE_DEVICE Part part_of(long count, long index, long parts) {
  const long size = (count + parts - 1) / parts;
  const long begin = index * size < count ? index * size : count;
  return {begin, begin + size < count ? begin + size : count};
}
